"""Engines of a database without Spark: over the model, over Arrow in this process, over a loop."""
