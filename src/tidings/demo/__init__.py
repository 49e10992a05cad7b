"""The demonstration: four receivers, good and bad ones, and the story of a thousand events that all add up."""
