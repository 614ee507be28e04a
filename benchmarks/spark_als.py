"""Spark MLlib's ALS in a process of its own: `python -m benchmarks.spark_als FOLDER KIND DIM ITERATIONS OUT`.

It prints seconds per iteration as JSON, and writes the factors of the last model to OUT. Everything stays on
127.0.0.1. The time of an iteration is the difference between fits with one iteration and with `ITERATIONS`, divided by
the rest of them; a fit before is not counted, as Java compiles meanwhile.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ALPHA, REG = 40.0, 0.001
THREADS = 2


def main(folder: str, kind: str, dim: int, iterations: int, out: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.ml.recommendation import ALS
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(f"local[{THREADS}]")
        .config("spark.driver.memory", "10g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.read.parquet(folder).selectExpr(
        "cast(user as int) user", "cast(item as int) item", "cast(value as float) value"
    )
    rows = rows.cache()
    count = rows.count()

    def fit(steps: int) -> tuple[float, Any]:
        als = ALS(rank=dim, maxIter=steps, regParam=REG, seed=0, userCol="user", itemCol="item", ratingCol="value")
        als.setImplicitPrefs(kind == "implicit").setAlpha(ALPHA).setCheckpointInterval(-1)
        start = time.perf_counter()
        model = als.fit(rows)
        return time.perf_counter() - start, model

    fit(1)
    once = min(fit(1)[0] for _ in range(2))
    whole, model = fit(iterations)
    for side in ("user", "item"):
        getattr(model, f"{side}Factors").write.mode("overwrite").parquet(str(Path(out) / side))
    print(json.dumps({"rows": count, "seconds": (whole - once) / (iterations - 1), "fit": whole}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
