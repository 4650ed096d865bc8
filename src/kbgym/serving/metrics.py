"""Counters and latencies as plain Prometheus text. Names of clients, texts and tokens never appear here."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """What was asked, how it ended, how long it took."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._times: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def request(self, route: str, status: int, seconds: float) -> None:
        self._requests[route, status] += 1
        counts = self._times.setdefault(route, [0] * (len(BUCKETS) + 1))
        counts[bisect_left(BUCKETS, seconds)] += 1
        self._sums[route] += seconds  # type: ignore[assignment]

    def text(self, gauges: dict[str, tuple[str, str, float]]) -> str:
        """Everything, with further values: name to (type, help, value)."""
        lines = ["# HELP kbgym_requests_total Requests by route and status.", "# TYPE kbgym_requests_total counter"]
        for (route, status), count in sorted(self._requests.items()):
            lines.append(f'kbgym_requests_total{{route="{route}",status="{status}"}} {count}')
        lines += ["# HELP kbgym_request_seconds Time to answer.", "# TYPE kbgym_request_seconds histogram"]
        for route, counts in sorted(self._times.items()):
            total = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += count
                lines.append(f'kbgym_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'kbgym_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}')
            lines.append(f'kbgym_request_seconds_count{{route="{route}"}} {total}')
        for name, (kind, help, value) in sorted(gauges.items()):
            lines += [f"# HELP kbgym_{name} {help}", f"# TYPE kbgym_{name} {kind}", f"kbgym_{name} {value:g}"]
        return "\n".join(lines) + "\n"
