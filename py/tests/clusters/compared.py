"""What is compared of two studies."""

import json


def figures(study):
    """What must be equal: all but the polls by packets, whose error is only bounded."""
    report = json.loads(study.json())
    return {name: report[name] for name in ("traffic", "outcome", "flows", "course", "sources")}
