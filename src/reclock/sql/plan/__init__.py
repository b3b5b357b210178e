"""The relational plan: typed scalars, nodes that refuse to be wrong, and their making.

``scalar`` and ``functions`` are expressions; ``relation`` the nodes; ``build`` makes a plan
from a query; ``decorrelate`` removes references to outer rows; ``spark_text`` writes
scalars as Spark SQL that never fails and says what went wrong instead.
"""
