"""h = sigmoid(x) and exp(h) of many scores at once: what the listwise losses are made of.

A call of the mathematical library an entry would cost more than the rest of a list, so both exponentials are
polynomials that the compiler turns into vector code, right to about 1e-7.
"""

from __future__ import annotations

import numpy as np

from .threads import kernel

_LOG2E = np.float32(1.4426950408889634)
_HALF = np.float32(0.5)
_ONE = np.float32(1)
# 2^f for |f| <= 1/2: powers of log 2 over factorials.
_C1, _C2, _C3 = np.float32(0.6931471805599453), np.float32(0.2402265069591007), np.float32(0.05550410866482158)
_C4, _C5, _C6 = np.float32(0.009618129107628477), np.float32(0.0013333558146428441), np.float32(0.00015403530393381608)
# exp(1/2 + f) = sqrt(e) exp(f): sqrt(e) over factorials.
_E0 = np.float32(1.6487212707001282)
_E2, _E3, _E4 = np.float32(0.8243606353500641), np.float32(0.2747868784500214), np.float32(0.06869671961250534)
_E5, _E6, _E7 = np.float32(0.01373934392250107), np.float32(0.002289890653750178), np.float32(0.0003271272362500254)


@kernel
def sigmoids(n: int, score: np.ndarray, bits: np.ndarray, power: np.ndarray, h: np.ndarray, growth: np.ndarray) -> None:
    """h = sigmoid(score) and growth = exp(h), float32[n]; bits int32[n] and power, its view as float32, are scratch."""
    for t in range(n):
        # exp(-x) = 2^k 2^f; beyond 87 the sigmoid is 0 or 1 in any case, and a NaN must stay one.
        y = -_LOG2E * min(max(score[t], np.float32(-87)), np.float32(87))
        whole = np.floor(y + _HALF)
        f = y - whole
        bits[t] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        h[t] = _ONE + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * _C6)))))
    for t in range(n):
        s = _ONE / (_ONE + h[t] * power[t])
        f = s - _HALF
        h[t] = s
        growth[t] = _E0 + f * (_E0 + f * (_E2 + f * (_E3 + f * (_E4 + f * (_E5 + f * (_E6 + f * _E7))))))
