"""Time the statistics and the rendering of a large report: 20 agents x 100 tasks x 10 seeds.

    python benchmarks/report_speed.py

Results and learning curves of the run are made up; the rest is what ``rlsuite-eval`` does after the last cell. Curves
have ten points a seed.
"""

import argparse
import io
import tempfile
import time
from contextlib import contextmanager
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
from rich.console import Console

from rlbench_suite import registry
from rlbench_suite.evaluation.report import Report, print_report, write_html
from rlbench_suite.evaluation.runner import plan
from rlbench_suite.evaluation.store import Run
