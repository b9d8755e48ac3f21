"""Tables on stdout."""

import math

from hopmap.cli.console import print_table
from support import about


def test_whole_numbers_look_alike_whatever_their_type(capsys):
    for number, shown in [
        (4096, "4,096"),
        (4096.0, "4,096"),
        (1234.5, "1,234"),
        (9999.96, "10,000"),
        (999.96, "1,000"),
        (-52_000_000.4, "-52,000,000"),
        (3.14159, "3.142"),
        (2.0, "2"),
        (math.nan, "nan"),
        (None, "-"),
    ]:
        with about(number, shown):
            print_table(["value"], [[number]], left=0)
            assert capsys.readouterr().out.split()[-1] == shown
