# SPDX-License-Identifier: Apache-2.0
"""Tables of recorded runs, and SQL files with questions about them, for DuckDB or Spark.

    tables = nccl_otf2.open("exp1")       # a folder of tables, an experiment directory, or a folder of several of these
    tables.rows("waits")                  # a question by its name, of a table, or any SQL: a list of dicts
    tables.pandas("SELECT function, count(*) FROM operations GROUP BY function")

docs/tables.md defines the tables. Only the engine is required (duckdb or pyspark); pandas and pyarrow results need these packages.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import warnings
from typing import Any, Dict, Iterator, List, Optional, Sequence, TextIO, Tuple, Union

TABLES = ("operations", "transfers", "waits", "phases", "runs")
ENGINES = ("duckdb", "spark")
FOLDER = "parquet"  # that `nccl-otf2 export --parquet` writes beside an archive

Path = Union[str, "pathlib.PurePath"]


class TablesError(Exception):
    """Raised if there are no tables, or no question of that name."""


def queries() -> Dict[str, str]:
    """Returns the SQL of the questions by name, from the folder sql next to this file's folder, or from nccl_otf2_sql in a wheel."""
    here = pathlib.Path(__file__).resolve().parent
    folder = here / "nccl_otf2_sql"
    if not folder.is_dir():
        folder = here.parent / "sql"
    found = {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.sql"))}
    if not found:
        raise TablesError(f"{folder} has no queries: they are installed with this file")
    return found


def question(text: str) -> str:
    """Returns the question that a query answers: its first comment."""
    return next((line[3:] for line in text.splitlines() if line.startswith("-- ") and "SPDX" not in line), "")


def folders(path: Path) -> List[pathlib.Path]:
    """Returns the folders of tables for a path: itself, the one in an experiment directory, or those of the folders in it.

    If jobs share an experiment directory, it is that of the newest job; a warning names the others."""
    top = newest(pathlib.Path(path))

    def of(folder: pathlib.Path) -> List[pathlib.Path]:
        return [f for f in (folder, folder / FOLDER) if files(f, TABLES[0])][:1]

    found = of(top) or [f for each in sorted(top.iterdir() if top.is_dir() else []) if each.is_dir() for f in of(each)]
    if not found:
        raise TablesError(f"{top} has no tables: make them with `nccl-otf2 export --parquet {top}`")
    for folder in found:
        missing = [t for t in TABLES if not files(folder, t)]
        if missing:
            raise TablesError(f"{folder} has no {', '.join(missing)}: it was written by an earlier version; export the archive again")
    return found


def newest(directory: pathlib.Path) -> pathlib.Path:
    """Returns the folder of the latest job in a shared experiment directory; the directory itself if it has one job."""
    anchor = "traces.otf2"
    if (directory / anchor).is_file() or not (directory / "shards").is_dir():
        return directory
    jobs = {int(f.parent.name[len("run-"):]): f for f in directory.glob(f"run-*/{anchor}") if f.parent.name[len("run-"):].isdigit()}
    if not jobs:
        return directory
    oldest = jobs[1].stat().st_mtime if 1 in jobs else 0
    order = sorted(jobs, key=lambda n: (jobs[n].stat().st_mtime >= oldest, n))  # an earlier unify may have left folders behind
    last = jobs[order.pop()].parent
    if order:
        others = ", ".join(str(jobs[n].parent) for n in reversed(order))
        warnings.warn(f"{directory} holds {len(jobs)} jobs: this is {last}, the newest; the others are {others}", stacklevel=4)
    return last


def files(folder: pathlib.Path, table: str) -> List[pathlib.Path]:
    """Returns the files of a table in a folder: one file, or all parts in order."""
    part = re.compile(re.escape(table) + r"(?:-(\d{4})-of-(\d{4}))?\.parquet")
    found = []
    for file in sorted(folder.iterdir() if folder.is_dir() else []):
        match = part.fullmatch(file.name)
        if match and file.is_file():
            found.append((int(match[1] or 1), int(match[2] or 1), file))
    numbers, counts = [n for n, _, _ in found], {of for _, of, _ in found}
    if found and (len(counts) > 1 or numbers != list(range(1, max(counts) + 1))):
        raise TablesError(f"{folder}: {table} is not whole, or there more than once: export all of its parts again")
    return [file for _, _, file in found]


# What SQL may do in a database that was opened here: read the tables, and nothing else. As in cmd/nccl-otf2-query/main.go, with the same functions of tables.
LOCK = ("SET allow_persistent_secrets = false", "SET enable_external_access = false", "SET lock_configuration = true")
FUNCTIONS = (
    "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "pragma_table_info", "pragma_version",
    "duckdb_tables", "duckdb_views", "duckdb_columns", "duckdb_functions", "duckdb_types", "duckdb_settings",
)
UNSAFE = "a query reads the tables and nothing else; unsafe=True, or --unsafe, lets it read and write files, load extensions and use the network"


def _refuse(session: Any, query: str) -> None:
    """Raises an error for SQL that is not one SELECT, or calls other functions of tables."""
    tree = json.loads(session.execute("SELECT json_serialize_sql(?)", [query]).fetchone()[0])
    if tree.get("error_type") == "parser":
        return  # DuckDB says it better when it is to run that
    if tree["error"] or len(tree["statements"]) != 1:
        raise TablesError(f"this is more than a SELECT: {UNSAFE}")

    def calls(node: Any) -> Iterator[str]:
        if isinstance(node, dict) and node.get("type") == "TABLE_FUNCTION" and isinstance(node.get("function"), dict):
            yield str(node["function"].get("function_name")).lower()
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            yield from calls(child)

    for name in calls(tree["statements"]):
        if name not in FUNCTIONS:
            raise TablesError(f"{name}() is none of the functions of tables that a query may call: {UNSAFE}")


def _literal(path: str, engine: str) -> str:
    """Returns a pattern of the engine that matches exactly this path."""
    if engine == "spark":
        return re.sub(r"([][*?{}\\\\])", r"\\\1", path)
    return re.sub(r"([*?[])", r"[\1]", path)


class Tables:
    """The tables of one run or of several, each as a view of an engine."""

    def __init__(self, paths: Sequence[Path], engine: str = "duckdb", session: Optional[Any] = None, unsafe: bool = False) -> None:
        """session: a DuckDB connection or a SparkSession to use; None: a new one, in which SQL for DuckDB can only read the tables.

        unsafe: SQL in the new session has no restrictions, as in a session of the caller and on Spark."""
        if engine not in ENGINES:
            raise TablesError(f"engine {engine!r} is none of {', '.join(ENGINES)}")
        where = [folder for path in paths for folder in folders(path)]
        self.engine = engine
        self.session = session if session is not None else _session(engine)
        self.locked = engine == "duckdb" and session is None and not unsafe
        paths_of = {t: [str(file.absolute()) for folder in where for file in files(folder, t)] for t in TABLES}
        if self.locked:  # DuckDB looks at patterns, and at what it opens
            forms = {form for of_table in paths_of.values() for path in of_table for form in (path, _literal(path, engine))}
            reached = ", ".join("'" + form.replace("'", "''") + "'" for form in sorted(forms))
            for setting in (f"SET allowed_paths = [{reached}]", *LOCK):
                self.session.execute(setting)
        for table, named in paths_of.items():
            of_table = [_literal(path, engine) for path in named]
            if engine == "spark":
                self.session.read.option("mergeSchema", "true").parquet(*of_table).createOrReplaceTempView(table)
            else:
                self.session.read_parquet(of_table, union_by_name=True).create_view(table, replace=True)

    def sql(self, query: str) -> Any:
        """Returns the result of a question, a table (both by name) or SQL: a DuckDB relation, or a Spark DataFrame."""
        text = query
        if query in TABLES and query not in queries():
            text = f"SELECT * FROM {query}"
        elif not any(c.isspace() for c in query.strip()):
            known = queries()
            if query not in known:
                raise TablesError(f"there is no query {query!r}: there are {', '.join(known)}")
            text = known[query]
        if not self.locked:
            return self.session.sql(text)
        _refuse(self.session, text)
        import duckdb

        try:
            return self.session.sql(text)
        except (duckdb.PermissionException, duckdb.HTTPException) as e:
            raise TablesError(f"{str(e).splitlines()[0]}: {UNSAFE}") from e

    def columns_and_rows(self, query: str) -> Tuple[List[str], List[Tuple[Any, ...]]]:
        """Returns the names of the result's columns, and its rows."""
        result = self.sql(query)
        if self.engine == "spark":
            return list(result.columns), [tuple(row) for row in result.collect()]
        return list(result.columns), result.fetchall()

    def rows(self, query: str) -> List[Dict[str, Any]]:
        """Returns the result as one dict per row."""
        columns, rows = self.columns_and_rows(query)
        return [dict(zip(columns, row)) for row in rows]

    def waits(self) -> List[Dict[str, Any]]:
        """Returns how long each rank waited, and was waited for (the question waits), as dicts. For the table use rows("SELECT * FROM waits")."""
        return self.rows("waits")

    def bandwidths(self) -> List[Dict[str, Any]]:
        """Returns times and bandwidths by kind and size (the question bandwidths), as dicts."""
        return self.rows("bandwidths")

    def pandas(self, query: str) -> Any:
        """Returns the result as a pandas DataFrame."""
        result = self.sql(query)
        return result.toPandas() if self.engine == "spark" else result.df()

    def arrow(self, query: str) -> Any:
        """Returns the result as a pyarrow Table."""
        result = self.sql(query)
        return result.toArrow() if self.engine == "spark" else result.to_arrow_table()


def verdict(path: Path, tool: str = "nccl-otf2") -> Dict[str, Any]:
    """Returns the verdict of `nccl-otf2 report` on what made the ranks of an archive wait (`verdict` of its JSON). It runs the tool."""
    try:
        out = subprocess.run([tool, "report", str(path), "--format", "json"], check=True, capture_output=True, text=True).stdout
    except FileNotFoundError as e:
        raise TablesError(f"{tool} is not there: name it, or put its folder into PATH") from e
    except subprocess.CalledProcessError as e:
        raise TablesError(e.stderr.strip()) from e
    return dict(json.loads(out)["verdict"])


def _session(engine: str) -> Any:
    if engine == "spark":
        try:
            from pyspark.sql import SparkSession
        except ImportError as e:
            raise TablesError("the engine spark needs pyspark: pip install pyspark, and a Java runtime") from e
        return SparkSession.builder.appName("nccl-otf2").getOrCreate()
    try:
        import duckdb
    except ImportError as e:
        raise TablesError("the engine duckdb needs duckdb: pip install duckdb") from e
    return duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})


def write(out: TextIO, columns: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> None:
    """Writes a result as a table for people, as CSV, or as JSON (a list of objects)."""
    if form == "json":
        json.dump([dict(zip(columns, row)) for row in rows], out, indent=1, default=str)
        out.write("\n")
    elif form == "csv":
        csv.writer(out, lineterminator="\n").writerows([_cell(v) for v in row] for row in [columns, *rows])
    else:
        texts = [[_printable(c) for c in columns]] + [["" if v is None else f"{v:.6g}" if isinstance(v, float) else _printable(v) for v in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*texts)]
        for text in texts:
            out.write("  ".join(cell.ljust(width) for cell, width in zip(text, widths)).rstrip() + "\n")


def _printable(value: Any) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def _cell(value: Any) -> Any:
    """Returns a text for spreadsheets, with a leading apostrophe if they would evaluate it as a formula."""
    if not isinstance(value, str):
        return value
    text = _printable(value)
    if text[:1] not in ("=", "+", "-", "@"):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text


def main(argv: Optional[Sequence[str]] = None) -> int:
    """python -m nccl_otf2: exit code 1 where there are no tables or no such question, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m nccl_otf2", description="Queries the tables of recorded runs.")
    parser.add_argument("query", nargs="?", help="name of a question, or SQL")
    parser.add_argument("dir", nargs="*", help="a folder of tables, an experiment directory, or a folder of several")
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0])
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table")
    parser.add_argument("--unsafe", action="store_true", help="let SQL read and write files, load extensions and use the network")
    parser.add_argument("--list", action="store_true", help="list the questions")
    args = parser.parse_args(argv)
    try:
        if args.list:
            known = queries()
            for name, text in known.items():
                print(f"{name:{max(map(len, known))}}  {question(text)}")
            return 0
        if not args.query or not args.dir:
            parser.error("name a question and a folder; --list lists the questions")
        columns, rows = Tables(args.dir, args.engine, unsafe=args.unsafe).columns_and_rows(args.query)
    except Exception as e:
        if not isinstance(e, TablesError) and type(e).__module__.partition(".")[0] not in ("duckdb", "_duckdb", "pyspark"):
            raise
        print(f"nccl_otf2: {e}", file=sys.stderr)
        return 1
    write(sys.stdout, columns, rows, args.format)
    return 0
