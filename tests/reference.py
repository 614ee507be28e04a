"""The slow, obvious versions of what the library does fast: loops that can be checked by eye."""

from __future__ import annotations

import itertools
import math

import numpy as np

# ---- weighted matrix factorisation -------------------------------------------------------------------------------


def wmf_objective_row(x, index, weight, rho, reg, V):
    """sum_p w_p (1 - x.v_p)^2 + rho sum over the rest (x.v_j)^2 + reg |x|^2, one pair at a time."""
    stored = dict(zip(index.tolist(), weight.tolist(), strict=True))
    total = float(reg) * float(np.dot(x, x))
    for j in range(len(V)):
        s = float(np.dot(x.astype(np.float64), V[j].astype(np.float64)))
        total += stored[j] * (1 - s) ** 2 if j in stored else float(rho) * s * s
    return total


def wmf_solve_row(index, weight, rho, reg, V):
    """The minimiser by a dense direct solve; zero for an empty row."""
    if len(index) == 0:
        return np.zeros(V.shape[1])
    W = np.full(len(V), float(rho))
    target = np.zeros(len(V))
    W[index] = weight
    target[index] = 1.0
    V = V.astype(np.float64)
    return np.linalg.solve(V.T @ (W[:, None] * V) + float(reg) * np.eye(V.shape[1]), V.T @ (W * target))


def wmf_objective(model, data):
    """The whole objective over the dense matrix."""
    U, V = model.user_factors_.astype(np.float64), model.item_factors_.astype(np.float64)
    target = np.zeros((len(U), len(V)))
    weight = np.full(target.shape, model.rho_)
    for u, i, value in zip(data.user, data.item, data.value, strict=True):
        target[u, i] = 1.0
        weight[u, i] = 1.0 + model.alpha * (np.log1p(value) if model.confidence_ == "log" else value)
    total = (weight * (target - U @ V.T) ** 2).sum()
    for vectors, pairs in ((U, weight.sum(1)), (V, weight.sum(0))):
        reg = model.reg_ * pairs**model.reg_power
        total += (reg * (vectors**2).sum(1)).sum()
    return total


# ---- evaluation ----------------------------------------------------------------------------------------------------


def list_metrics(value, relevant, k, neutral=0.0, half_life=5.0):
    """Every ranking metric of one list whose entries are already in order; k cuts the list."""
    n, cut, found = len(value), min(k, len(value)), sum(map(bool, relevant))
    top = [bool(r) for r in relevant[:cut]]
    places = [i for i in range(cut) if top[i]]

    def dcg(values):
        return sum((2.0 ** max(v, 0) - 1) / math.log2(i + 2) for i, v in enumerate(values[:cut]))

    def utility(values):
        return sum(max(v - neutral, 0) / 2 ** (i / (half_life - 1)) for i, v in enumerate(values[:cut]))

    ideal = sorted(value, reverse=True)
    nothing = float("nan")
    good = [i for i in range(n) if relevant[i]]
    bad = [i for i in range(n) if not relevant[i]]
    return {
        "ndcg": dcg(value) / dcg(ideal) if dcg(ideal) > 0 else nothing,
        "hlu": utility(value) / utility(ideal) if utility(ideal) > 0 else nothing,
        "precision": len(places) / k if found else nothing,
        "recall": len(places) / found if found else nothing,
        "hit": float(len(places) > 0) if found else nothing,
        "mrr": (1 / (places[0] + 1) if places else 0.0) if found else nothing,
        "map": sum(sum(top[: i + 1]) / (i + 1) for i in places) / min(k, found) if found else nothing,
        "auc": sum(g < b for g in good for b in bad) / (len(good) * len(bad)) if good and bad else nothing,
    }


def tie_orders(scores):
    """All orders of the entries by falling score: each tie group in each of its permutations."""
    groups = [[i for i in range(len(scores)) if scores[i] == s] for s in sorted(set(scores), reverse=True)]
    for choice in itertools.product(*(itertools.permutations(g) for g in groups)):
        yield [i for group in choice for i in group]


def expected_list_metrics(scores, value, relevant, k):
    """The mean of `list_metrics` over every way in which ties can fall."""
    each = [list_metrics([value[i] for i in o], [relevant[i] for i in o], k) for o in tie_orders(scores)]
    return {name: sum(one[name] for one in each) / len(each) for name in each[0]}


def counts_in_list(mine, others):
    """(above, tied) of a score among the scores of all candidates, its own included."""
    return sum(o > mine for o in others), sum(o == mine for o in others)


def pair_counts(scores, value):
    """(wrong order, equal score, different value, all) pairs."""
    pairs = list(itertools.combinations(range(len(scores)), 2))
    comparable = [(p, q) for p, q in pairs if value[p] != value[q]]
    wrong = sum((scores[p] - scores[q]) * (value[p] - value[q]) < 0 for p, q in comparable)
    return wrong, sum(scores[p] == scores[q] for p, q in comparable), len(comparable), len(pairs)


# ---- item-kNN, EASE, ALS, top-k ----------------------------------------------------------------------------------


def similarities(X, kind, shrink):
    """Shrunk similarities of the columns of a dense X, pair by pair; 0 with itself."""
    n = X.shape[1]
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            dot, a, b = X[:, i] @ X[:, j], X[:, i] @ X[:, i], X[:, j] @ X[:, j]
            if i == j or dot <= 0:
                continue
            scale = {"cosine": np.sqrt(a * b), "jaccard": a + b - dot, "conditional": a}[kind]
            out[i, j] = dot / (scale + shrink)
    return out


def top_neighbors(similarity, k):
    """Each row with only its k largest positive entries, equal ones by rising column."""
    out = np.zeros_like(similarity)
    for i, row in enumerate(similarity):
        for j in sorted(range(len(row)), key=lambda j: (-row[j], j))[:k]:
            out[i, j] = row[j]
    return out


def ease_weights(X, reg):
    """Column by column: ridge regression of an item on all the others (Steck 2019 solves them all at once)."""
    n = X.shape[1]
    B = np.zeros((n, n))
    for j in range(n):
        others = [i for i in range(n) if i != j]
        A = X[:, others].T @ X[:, others] + reg * np.eye(n - 1)
        B[others, j] = np.linalg.solve(A, X[:, others].T @ X[:, j])
    return B


def als_row(targets, vectors, reg, reg_bias):
    """The (vector, bias) that minimises the squared errors plus regularisation, by a dense direct solve."""
    d = vectors.shape[1]
    design = np.hstack([vectors.astype(np.float64), np.ones((len(vectors), 1))])
    penalty = np.diag([float(reg)] * d + [float(reg_bias)])
    x = np.linalg.solve(design.T @ design + penalty, design.T @ targets)
    return x[:d], x[d]


def als_objective(model, data):
    """The whole objective, rating by rating."""
    total = 0.0
    for u, i, value in zip(data.user, data.item, data.value, strict=True):
        inner = model.user_factors_[u].astype(np.float64) @ model.item_factors_[i]
        total += (value - model.mean_ - model.user_bias_[u] - model.item_bias_[i] - inner) ** 2
    for codes, vectors, bias in (
        (data.user, model.user_factors_, model.user_bias_),
        (data.item, model.item_factors_, model.item_bias_),
    ):
        counts = np.bincount(codes, minlength=len(vectors)).astype(float)
        held = model.reg * np.where(counts > 0, counts**model.reg_power, 0)
        total += (held * (vectors.astype(np.float64) ** 2).sum(1)).sum()
        total += model.reg_bias * (bias.astype(np.float64) ** 2).sum()
    return total


def top_k(row, k):
    """Positions of the k largest entries, equal ones by rising position; neither NaN nor -inf."""
    real = [j for j in range(len(row)) if row[j] > -np.inf]
    return sorted(real, key=lambda j: (-row[j], j))[:k]


# ---- pairwise ranking losses -------------------------------------------------------------------------------------


def hinge_list(m, level):
    """(loss, gradient, Hessian) of the squared hinge over all pairs of different level, one pair at a time."""
    n = len(m)
    loss, gradient, hessian = 0.0, np.zeros(n), np.zeros((n, n))
    for j in range(n):
        for k in range(n):
            short = 1 - (m[k] - m[j])
            if level[k] > level[j] and short >= 0:
                loss += short**2
                gradient[j] += 2 * short
                gradient[k] -= 2 * short
                hessian[np.ix_([j, k], [j, k])] += np.array([[2, -2], [-2, 2]])
    return loss, gradient, hessian


def logistic_pairs(m, high, low):
    """(loss, gradient, Hessian) of log(1 + exp(-(m_high - m_low))) over given pairs."""
    n = len(m)
    loss, gradient, hessian = 0.0, np.zeros(n), np.zeros((n, n))
    for j, k in zip(high, low, strict=True):
        z = m[j] - m[k]
        s = 1 / (1 + np.exp(z))
        loss += np.log1p(np.exp(-z))
        gradient[j] -= s
        gradient[k] += s
        hessian[np.ix_([j, k], [j, k])] += s * (1 - s) * np.array([[1, -1], [-1, 1]])
    return loss, gradient, hessian


def primal_cr_objective(U, V, data, reg):
    """Squared hinge over every pair of differently rated items of every user, plus reg / 2 of all squares."""
    total = 0.5 * reg * ((U.astype(np.float64) ** 2).sum() + (V.astype(np.float64) ** 2).sum())
    for u in range(len(U)):
        mine = data.user == u
        scores = V[data.item[mine]].astype(np.float64) @ U[u].astype(np.float64)
        total += hinge_list(scores, data.value[mine])[0]
    return total


# ---- collrank: a ranking SVM and its dual --------------------------------------------------------------------------


def svm_primal(w, X, reg):
    """reg / 2 |w|^2 + sum of max(0, 1 - w.x)^2, one row of X a pair; value and gradient."""
    short = np.maximum(0.0, 1.0 - X @ w)
    return 0.5 * reg * w @ w + (short**2).sum(), reg * w - 2.0 * X.T @ short


def svm_dual(alpha, X, reg):
    """Lower bound of the minimum of `svm_primal` for any alpha >= 0; equal to it at the best alpha."""
    w = X.T @ alpha / reg
    return (alpha - alpha**2 / 4).sum() - 0.5 * reg * w @ w


def svm_sweep(alpha, X, reg, order):
    """Exact maximum of the dual along one coordinate after the other, w made anew each time."""
    alpha = alpha.astype(np.float64)
    for p in order:
        w = X.T @ alpha / reg
        alpha[p] = max(0.0, alpha[p] + (1 - w @ X[p] - alpha[p] / 2) / (X[p] @ X[p] / reg + 0.5))
    return alpha


def item_features(users, high, low, U, items):
    """One row a pair: the user's vector at the row of the high item and its negative at the low one, flattened."""
    X = np.zeros((len(high), items, U.shape[1]))
    for p, (i, j, k) in enumerate(zip(users, high, low, strict=True)):
        X[p, j] += U[i]
        X[p, k] -= U[i]
    return X.reshape(len(high), -1)


# ---- stochastic gradient descent: MF and BPR -----------------------------------------------------------------------


def mf_loss(y, mean, x, b, v, c, held):
    """Squared error of one rating and its share of the penalties; held = those on x, b, v and c."""
    error = y - mean - b - c - x @ v
    return error**2 + held[0] * x @ x + held[1] * b * b + held[2] * v @ v + held[3] * c * c


def mf_steps(ratings, lr, bias_lr, mean, s, h, t, g, X, b, V, c):
    """Steps for (user, item, rating) in the given order, in place."""
    for u, i, y in ratings:
        error = y - mean - b[u] - c[i] - X[u] @ V[i]
        X[u], V[i] = X[u] + lr * (error * V[i] - s[u] * X[u]), V[i] + lr * (error * X[u] - t[i] * V[i])
        b[u] += bias_lr * (error - h[u] * b[u])
        c[i] += bias_lr * (error - g[i] * c[i])


def bpr_loss(u, v, w, b, c, reg):
    """Loss of one triple: u should like (v, b) more than (w, c)."""
    x = u @ (v - w) + b - c
    return math.log1p(math.exp(-x)) + reg / 2 * (u @ u + v @ v + w @ w + b * b + c * c)


def bpr_steps(triples, lr, bias_lr, reg, U, V, bias):
    """Steps for (user, item taken, item not taken) in the given order, in place."""
    for a, i, j in triples:
        u, v, w = U[a].copy(), V[i].copy(), V[j].copy()
        e = 1 / (1 + math.exp(u @ (v - w) + bias[i] - bias[j]))
        U[a] = u + lr * (e * (v - w) - reg * u)
        V[i] = v + lr * (e * u - reg * v)
        V[j] = w + lr * (-e * u - reg * w)
        bias[i] += bias_lr * (e - reg * bias[i])
        bias[j] += bias_lr * (-e - reg * bias[j])


def bpr_user_loss(x, taken, V, bias, reg):
    """What the fold-in minimises, up to a factor: the mean over all triples of a user whose vector is x."""
    scores = V @ x + bias
    margins = scores[taken][:, None] - np.delete(scores, taken)
    return np.log1p(np.exp(-margins)).mean() + reg / 2 * x @ x


# ---- sequential BPR: chains and translations -----------------------------------------------------------------------


def chain_score(u, i, j, U, P, V):
    """p_u . q_j + P_i . Q_j; V has q and Q side by side, and U no columns where users do not count."""
    a = U.shape[1]
    return U[u] @ V[j, :a] + P[i] @ V[j, a:]


def translation_score(u, i, j, l1, G, t, T, bias):
    """b_j - d(g_i + t + t_u, g_j)."""
    gap = G[i] + t + T[u] - G[j]
    return bias[j] - (np.abs(gap).sum() if l1 else gap @ gap)


def bpr_loss_of(score, sample, *tables):
    """log(1 + exp(-(score of the next item - score of the negative))) of a sample (user, last, next, negative)."""
    u, i, j, k = sample
    return math.log1p(math.exp(score(u, i, k, *tables) - score(u, i, j, *tables)))


def chain_steps(samples, lr, reg_user, reg, U, P, V):
    """Steps for (user, last, next, negative) in the given order, in place."""
    a = U.shape[1]
    for u, i, j, k in samples:
        e = 1 / (1 + math.exp(chain_score(u, i, j, U, P, V) - chain_score(u, i, k, U, P, V)))
        context = np.concatenate([U[u], P[i]])
        slope = e * (V[j] - V[k])
        U[u] += lr * (slope[:a] - reg_user * U[u])
        P[i] += lr * (slope[a:] - reg * P[i])
        V[j] += lr * (e * context - reg * V[j])
        V[k] += lr * (-e * context - reg * V[k])


def translation_steps(samples, lr, reg, reg_bias, l1, G, t, T, bias):
    """The same for translations: the gradient of all rows first, then the moves, then back into the unit ball."""
    for u, i, j, k in samples:
        tables = (l1, G, t, T, bias)
        e = 1 / (1 + math.exp(translation_score(u, i, j, *tables) - translation_score(u, i, k, *tables)))
        to_j, to_k = (G[i] + t + T[u] - G[x] for x in (j, k))
        near, far = (np.sign(to_j), np.sign(to_k)) if l1 else (2 * to_j, 2 * to_k)
        moves = np.zeros_like(G)
        for row, move in ((i, far - near), (j, near), (k, -far)):
            moves[row] += lr * e * move
        G += moves
        t += lr * (e * (far - near) - reg * t)
        T[u] += lr * (e * (far - near) - reg * T[u])
        bias[j] += lr * (e - reg_bias * bias[j])
        bias[k] += lr * (-e - reg_bias * bias[k])
        for row in {i, j, k}:
            G[row] /= max(1.0, np.linalg.norm(G[row]))


# ---- cofirank: the NDCG surrogate ----------------------------------------------------------------------------------


def cofirank_parts(n, top):
    """(discount, decay) of each place."""
    place = np.arange(n)
    return np.where(place < top, 1 / np.log2(place + 2), 0.0), (place + 2.0) ** -0.25


def one_minus_ndcg(value, order, top):
    """1 - NDCG@top of the items in this order."""
    gain, (discount, _) = 2.0 ** np.asarray(value, float) - 1, cofirank_parts(len(value), top)
    return 1 - (gain[list(order)] * discount).sum() / (np.sort(gain)[::-1] * discount).sum()


def cofirank_loss(score, value, top):
    """The largest, over all orders, of 1 - NDCG plus decay times score, minus the same sum of the best ideal order."""
    n, (_, decay) = len(score), cofirank_parts(len(score), top)
    orders = list(itertools.permutations(range(n)))
    worst = max(one_minus_ndcg(value, o, top) + (decay * score[list(o)]).sum() for o in orders)
    ideal = max((decay * score[list(o)]).sum() for o in orders if all(np.diff(np.asarray(value)[list(o)]) <= 0))
    return worst - ideal


# ---- listwise losses: SQL-Rank and ListRank-MF -----------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, float)))


def plackett_luce_loss(x, order, top=None):
    """Minus the log of the probability that the entries leave an urn in this order, of the first `top` of them."""
    weight = np.exp(sigmoid(x))
    total = 0.0
    for t in range(len(order) if top is None else min(top, len(order))):
        total -= math.log(weight[order[t]] / sum(weight[p] for p in order[t:]))
    return total


def top_one_loss(x, rating):
    """Cross entropy between who comes first by the ratings and who does by the scores."""
    mine, theirs = np.exp(sigmoid(x)), np.exp(np.asarray(rating, float))
    return -sum(b / theirs.sum() * math.log(a / mine.sum()) for a, b in zip(mine, theirs, strict=True))


def differences(f, x, step=1e-5):
    """The gradient of f at x by central differences."""
    x = np.asarray(x, float)
    moves = step * np.eye(x.size)
    return np.array([(f(x + move) - f(x - move)) / (2 * step) for move in moves])


def listwise_objective(U, V, lists, loss, reg):
    """The sum of loss(scores, user) over lists of items, one a user, and the regularisation."""
    U, V = U.astype(float), V.astype(float)
    total = sum(loss(V[items] @ U[u], u) for u, items in enumerate(lists) if len(items))
    return total + reg / 2 * ((U**2).sum() + (V**2).sum())


def mmr(scores, similar, dial: float, k: int) -> list[int]:
    """Maximal marginal relevance: the positions of the k items that are chosen one after the other."""
    spread = np.ptp(scores) if len(scores) else 0.0
    relevance = (scores - scores.min()) / spread if spread > 0 else np.zeros(len(scores))
    chosen: list[int] = []
    while len(chosen) < min(k, len(scores)):
        left = [i for i in range(len(scores)) if i not in chosen]
        values = [
            (1 - dial) * relevance[i] - dial * (max(similar[i, j] for j in chosen) if chosen else 0.0) for i in left
        ]
        chosen.append(left[int(np.argmax(values))])
    return chosen


def sparse_ease_weights(X, reg, neighbors, rounds):
    """Column by column: the regressors in batches by |correlation with the residual| / size, solved after each."""
    G, n = X.T @ X, X.shape[1]
    B = np.zeros((n, n))
    for j in range(n):
        chosen, b = [], np.zeros(0)
        for turn in range(1, rounds + 1):
            residual = G[:, j] - G[:, chosen] @ b
            gain = np.abs(residual) / np.sqrt(np.diag(G) + reg)
            gain[[j, *chosen]] = 0
            best = np.argsort(-gain, kind="stable")[: neighbors * turn // rounds - len(chosen)]
            chosen += [i for i in best if gain[i] > 1e-9]
            b = np.linalg.solve(G[np.ix_(chosen, chosen)] + reg * np.eye(len(chosen)), G[chosen, j])
        B[chosen, j] = b
    return B
