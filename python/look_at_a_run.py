# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # A recorded run, cell by cell
# Open this file in Jupyter (with jupytext), VS Code, PyCharm or Spyder, which take each `# %%` for a cell. The run is the experiment directory
# `exp1`; before, `nccl-otf2 export --parquet exp1` has made its tables. `pip install duckdb matplotlib` is what it needs, and the folder of the tool in PATH.

# %%
import nccl_otf2
import nccl_otf2_plots

run = "exp1"
tables = nccl_otf2.open(run)
about = tables.rows("runs")[0]
print(f"{about['processes']} processes on {about['hosts']} hosts, {about['duration_ns'] / 1e9:.3f} s")

# %% [markdown]
# ## Who made the others wait?
# What the report says: whose doing it was, not who came last. A rank that is late because it waited for another one is not named.

# %%
verdict = nccl_otf2.verdict(run)
print(verdict["text"])

# %% [markdown]
# How long each rank waited, and how long others waited for it: sums over the table `waits`.

# %%
waits = tables.waits()
for row in waits[:5]:
    print(f"{row['rank_name']:10} waited {row['waited_ns'] / 1e6:10.3f} ms, others waited for it {row['caused_ns'] / 1e6:10.3f} ms")

# %% [markdown]
# ## When was that?

# %%
waiting = nccl_otf2_plots.waiting(tables)

# %% [markdown]
# ## How fast were the operations?

# %%
for row in tables.bandwidths():
    print(f"{row['function']} on {row['communicator']}, {row['size_bytes']} bytes: {row['operations']} operations, {row['busbw_gbs']:.3f} GB/s")
bandwidth = nccl_otf2_plots.bandwidth(tables)

# %% [markdown]
# ## Any other question is SQL
# docs/tables.md says what the columns are. `tables.pandas(...)` and `tables.arrow(...)` give frames.

# %%
latest = tables.rows("""
SELECT for_rank_name, function, ordinal, sum(waited_ns) / 1e6 AS waited_ms
FROM waits
WHERE NOT start_up
GROUP BY for_rank_name, function, ordinal
ORDER BY waited_ms DESC, ordinal
LIMIT 3
""")
for row in latest:
    print(f"{row['function']} {row['ordinal']}: {row['waited_ms']:.3f} ms for {row['for_rank_name']}")
