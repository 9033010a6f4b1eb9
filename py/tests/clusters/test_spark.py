from compared import figures
from pyspark.sql import SparkSession


def test_the_documented_lines_give_the_whole(captures, whole, documented):
    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        assert figures(documented("On Spark")(spark, captures)) == whole
    finally:
        spark.stop()
