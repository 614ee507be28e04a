"""Peak memory of a fit against what it must hold: both orientations of the matrix and the factors; and what a Dataset
costs.
"""

from __future__ import annotations

from .tools import Table, in_process

CODE = """
import json, resource, sys
import numpy as np
import corank as cr
users, items, rows, dim = {shape}
data = cr.synthetic.realistic(users=users, items=items, rows=rows).data
cr.WMF(dim=8, epochs=1).fit(cr.from_arrays(user=[1, 1, 2], item=[1, 2, 1]))  # compiled code is not what is measured
arrays = data.user.nbytes + data.item.nbytes + data.value.nbytes + data.time.nbytes
ids = data.users.ids.nbytes + data.items.ids.nbytes
def now():
    with open("/proc/self/status") as f:
        return int(next(l for l in f if l.startswith("VmRSS")).split()[1]) * 1024
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")  # the peak starts anew
before = now()
model = cr.WMF(dim=dim, epochs=2).fit(data)
with open("/proc/self/status") as f:
    peak = int(next(l for l in f if l.startswith("VmHWM")).split()[1]) * 1024
must = 2 * 8 * len(data) + 8 * (users + items + 2) + 4 * dim * (users + items)
print(json.dumps(dict(peak=peak - before, must=must, data=(arrays + ids) / arrays)))
"""


def run() -> Table:
    rows = []
    for shape in ((20_000, 5_000, 2_000_000, 64), (50_000, 10_000, 8_000_000, 64), (138_000, 20_000, 20_000_000, 64)):
        got = in_process(CODE.format(shape=shape))
        name = f"{shape[0]:,} x {shape[1]:,}, {shape[2]:,} rows, dim {shape[3]}"
        rows.append(
            [
                name,
                f"{got['peak'] / 1e6:,.0f}",
                f"{got['must'] / 1e6:,.0f}",
                f"**{got['peak'] / got['must']:.2f}**",
                f"{got['data']:.2f}",
            ]
        )
    header = ["data", "peak of fit, MB", "both CSR + factors, MB", "ratio", "Dataset / its arrays"]
    return Table(
        "Memory of a WMF fit", header, rows, "Peak resident memory of the fit beyond what was there before it."
    )
