"""Random pipelines, compared at every time with a model that knows nothing of the product."""
