# SPDX-License-Identifier: Apache-2.0
"""run.py ENGINE: of each line of standard input, a JSON list of {"dirs": [...], "query": ...}, it writes a list of their rows."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import nccl_otf2


def spark():
    """A cluster of two executors, which are processes of their own."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ.update(SPARK_HOME=os.path.dirname(pyspark.__file__), SPARK_LOCAL_IP="127.0.0.1", SPARK_WORKER_DIR=os.environ["SPARK_LOCAL_DIRS"])
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.executor.memory", "512m")
    session = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    assert session.range(1000, numPartitions=4).count() == 1000 and executors <= 2
    return session


engine = sys.argv[1]
session = spark() if engine == "spark" else None
for line in sys.stdin:
    results = []
    for ask in json.loads(line):
        tables = nccl_otf2.open(*ask["dirs"], engine=engine, session=session)
        results.append(tables.rows(ask["query"]))
        if engine == "duckdb":
            tables.session.close()
    print(json.dumps(results, default=str), flush=True)
