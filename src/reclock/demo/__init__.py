"""``reclock demo``: the main job on a real Kafka, killed again and again, and the proof."""
