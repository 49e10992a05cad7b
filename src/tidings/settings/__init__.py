"""The settings: `defaults.toml` documents them, `load_settings` reads them from file, environment, flags."""

from tidings.settings.sections import Settings
from tidings.settings.sources import load_settings

__all__ = ["Settings", "load_settings"]
