"""The options of an experiment together: defaults per task and protocol, and options that contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..data.split import Split
from ..errors import several, show
from ..evaluation.metrics import metrics_of
from ..model import Model
from ..reading.edge_tables import edge_file
from .kinds import Mistakes, raised
from .schema import mistakes
from .source import rule_alone
from .stated import refit_mistakes

if TYPE_CHECKING:
    from .experiment import Experiment

# Protocol -> metrics where none are given; rows are sorted by the first one.
METRICS = {
    "full": ("ndcg@10", "recall@10", "mrr@10", "coverage@10", "novelty@10"),
    "sampled": ("ndcg@10", "recall@10", "mrr@10"),
    "rated": ("ndcg@10", "pairwise_error"),
}
# Task -> protocol where none is given. implicit: which items will a user take next? explicit: in which order does a
# user rate items? sequential: as implicit, for models that read a history in order.
TASKS = {"implicit": "full", "explicit": "rated", "sequential": "full"}


def check_options(experiment: Experiment, where: str = "", more: Sequence[tuple[str, str]] = ()) -> None:
    """Raise one error with all mistakes that can be found without opening the data.

    where : the file that they are in. more : mistakes that were found before, (option, sentence).
    """
    alone = [*more, *mistakes(experiment)]
    wrong = {name for name, _ in alone}
    found = [sentence for _, sentence in alone]
    for names, contradiction in CONTRADICTIONS:
        if wrong.isdisjoint(names):  # what is wrong by itself is said once
            found += contradiction(experiment)
    if found:
        raise several(found, where)


def _protocol(asked: Experiment) -> Mistakes:
    kind = asked.protocol or TASKS[asked.task]
    if kind != "sampled" and (asked.negatives != 100 or asked.popular):
        yield f"negatives and popular belong to protocol 'sampled', and this one is {kind!r}: drop them, or change it"


def _metrics(asked: Experiment) -> Mistakes:
    kind = asked.protocol or TASKS[asked.task]
    for one in metrics_of(asked.metrics_used()):
        if "top" in one.needs and kind != "full":
            yield f"metrics: {one.name} is computed from top-k lists: it needs protocol 'full', not {kind!r}"


def _given_split(asked: Experiment) -> Mistakes:
    if isinstance(asked.data, Split):
        if asked.test is not None or asked.valid is not None or asked.split != "auto":
            yield "data is a Split already: leave out split, test and valid, or give the rows as a Dataset"
    elif asked.valid is not None and asked.test is None:
        yield f"valid = {show(str(asked.valid))} needs test rows beside it: give test = ... (--test) too"
    elif asked.test is not None and (ties := rule_alone(asked.split)):
        yield f"ties = {show(ties)} orders rows before they are divided, and test rows are given: leave ties out"
    elif asked.test is not None and asked.split != "auto":
        yield f"split {asked.split!r} divides the rows, and test = {show(str(asked.test))} has divided them: drop one"


def _generated(asked: Experiment) -> Mistakes:
    if isinstance(asked.data, Mapping):
        for name in ("test", "valid", "columns"):
            if getattr(asked, name):
                yield f"{name} is for data of files, and this data is generated: leave {name} out"
        if asked.split in ("published", {"name": "published"}):
            yield "split 'published' is for data with a split of its own, and this data is generated: use 'auto'"


def _edges(asked: Experiment) -> Mistakes:
    """Files of edges must exist, and need data that has no graph or split yet."""
    for name in ("user_edges", "item_edges"):
        path = getattr(asked, name)
        if path is None:
            continue
        yield from raised(edge_file, path, asked.data)
        if isinstance(asked.data, Split | Mapping):
            yield (
                f"{name} needs a table, a named dataset or a Dataset, and this data is generated or split already: "
                "give it the graph first"
            )


def _curves(asked: Experiment) -> Mistakes:
    if asked.curves:
        for name in ("tune", "seeds", "refit", "keep", "between"):
            if getattr(asked, name):
                yield f"curves = true fits each row as it is, with one seed, and {name} would have no effect: drop one"


def _between(asked: Experiment) -> Mistakes:
    if not asked.between:
        return
    labels = [_label(row) for row in asked.models]
    if len(asked.between) != 2 or not set(labels).issuperset(asked.between) or len(set(asked.between)) != 2:
        yield f"between = {list(asked.between)!r}: give the labels of two rows, such as between = ['MF', 'GRMF, G']"


def _label(row: object) -> str:
    if isinstance(row, Model):
        return str(getattr(row, "label", type(row).name()))
    return str(row.get("label", row["name"])) if isinstance(row, Mapping) else str(row)


def _seeds(asked: Experiment) -> Mistakes:
    for place, row in enumerate(asked.models, 1):
        if asked.seeds and isinstance(row, Mapping) and "seed" in row:
            yield f"model {place}: seed = {show(row['seed'])} has no effect beside seeds: drop one"


def _published(asked: Experiment) -> Mistakes:
    for place, row in enumerate(asked.models, 1):
        if isinstance(row, Mapping) and row.get("published"):
            under = {**asked.published_under, **row.get("published_under", {})}
            yield from refit_mistakes(asked.refit, under, f"model {place} ({_label(row)})")


# The options that each looks at: where one of them is wrong by itself, there is nothing to compare.
CONTRADICTIONS: tuple[tuple[tuple[str, ...], Callable[[Experiment], Mistakes]], ...] = (
    (("task", "protocol", "negatives", "popular"), _protocol),
    (("task", "protocol", "metrics"), _metrics),
    (("data", "split", "test", "valid"), _given_split),
    (("data", "split", "test", "valid", "columns"), _generated),
    (("data", "user_edges", "item_edges"), _edges),
    (("curves", "tune", "seeds", "refit", "keep", "between"), _curves),
    (("between", "models"), _between),
    (("seeds", "models"), _seeds),
    (("models", "refit", "published_under"), _published),
)
