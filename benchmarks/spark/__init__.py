"""What ``benchmarks.spark_pipeline`` consists of."""
