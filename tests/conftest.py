from __future__ import annotations

from hypothesis import settings

# A busy machine is slow, not wrong: no deadline for a single example.
settings.register_profile(
    "reclock", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("reclock")
