"""What requests and answers look like: they are checked by these, and the OpenAPI description is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, FiniteFloat, StrictInt, StrictStr, Tag

from .settings import MOST_EVENTS, MOST_FOUND, MOST_HISTORY, MOST_ITEMS, MOST_LISTED

LARGEST = float(2**127)  # a value is a 32-bit float
Text = Annotated[StrictStr, Field(min_length=1, max_length=512)]
Number = Annotated[StrictInt, Field(ge=-(2**63), le=2**63 - 1)]
Id = Number | Text
Value = Annotated[FiniteFloat, Field(ge=-LARGEST, le=LARGEST, strict=True)]  # true is no number
Name = Annotated[StrictStr, Field(min_length=1, max_length=64)]
Count = Annotated[int, Field(ge=1, le=MOST_ITEMS)]
Few = Annotated[int, Field(ge=1, le=MOST_FOUND)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]

MODEL = "which model answers; by default the one of the user (see the shares of /models)"
WHERE = 'rules over the labels of items: {"genre": "Comedy", "year": {"min": 1990}}'


class Strict(BaseModel):
    """A body or a query: a name that is not known is an error, not ignored."""

    model_config = ConfigDict(extra="forbid")


class Liked(Strict):
    """An item of a history with a rating."""

    item: Id
    value: Value | None = None


class Rules(Strict):
    """Which items may be recommended."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())
    k: Count = Field(10, description="number of items")
    model: Name | None = Field(None, description=MODEL)
    seen: bool = Field(False, description="recommend items of the history, too")
    diversity: Share = Field(
        0.0, description="0: by score alone; 1: as different from each other as possible (k up to 100)"
    )


class RecommendBody(Rules):
    """Recommendations for a user, for a history, or for a user with newer events."""

    model_config = ConfigDict(strict=True)  # JSON has types: "5" and true are no numbers
    user: Id | None = Field(None, description="a user of the training data, or one with feedback", examples=[1])
    history: list[Id | Liked] = Field(
        default_factory=list,
        max_length=MOST_HISTORY,
        description="items, oldest first; with a user: newer than what is known",
    )
    items: list[Id] | None = Field(None, max_length=MOST_LISTED, description="candidates; by default all items")
    exclude: list[Id] | None = Field(None, max_length=MOST_LISTED, description="items that are not recommended")
    where: dict[str, Any] | None = Field(None, max_length=50, description=WHERE)


Commas = Annotated[StrictStr, Field(min_length=1, max_length=60_000)]
Listed = Annotated[list[Commas], Field(max_length=MOST_HISTORY)]


class RecommendQuery(Rules):
    """The same in an address: ids are texts, and lists are repeated or separated by commas."""

    user: Text | None = Field(None, description="a user of the training data, or one with feedback", examples=["1"])
    history: Listed = Field(default_factory=list, description="items, oldest first: repeated, or separated by commas")
    items: Listed | None = Field(None, description="candidates; by default all items")
    exclude: Listed | None = Field(None, description="items that are not recommended")
    where: Annotated[StrictStr, Field(max_length=10_000)] | None = Field(None, description=f"JSON: {WHERE}")


class ExplainBody(Strict):
    """Why items are recommended to a user, for a history, or to a user with newer events."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), strict=True)
    user: Id | None = Field(None, examples=[1])
    history: list[Id | Liked] = Field(default_factory=list, max_length=MOST_HISTORY)
    items: Annotated[list[Id], Field(min_length=1, max_length=MOST_FOUND)] = Field(description="what to explain")
    k: Few = Field(5, description="reasons per item")
    model: Name | None = Field(None, description=MODEL)


class ExplainQuery(Strict):
    """The same in an address."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())
    user: Text | None = Field(None, examples=["1"])
    history: Listed = Field(default_factory=list, description="items, oldest first: repeated, or separated by commas")
    items: Annotated[list[Commas], Field(min_length=1, max_length=MOST_FOUND)] = Field(description="what to explain")
    k: Few = Field(5, description="reasons per item")
    model: Name | None = Field(None, description=MODEL)


class SimilarQuery(Strict):
    """Items like an item."""

    item: Text
    k: Count = 10
    model: Name | None = Field(None, description=MODEL)


class SearchQuery(Strict):
    """Items by title or id, or users by the beginning of their id."""

    q: Annotated[StrictStr, Field(max_length=200)] = Field("", description="empty: the most popular")
    k: Few = 10
    model: Name | None = Field(None, description=MODEL)


class UserQuery(Strict):
    """One user."""

    user: Text
    model: Name | None = Field(None, description=MODEL)


class ForgetQuery(Strict):
    """The user whose feedback is deleted."""

    user: Text


Kind = Literal["click", "like", "play", "purchase", "rating", "dislike", "hide", "view"]


class FeedbackEvent(Strict):
    """What a user did with an item."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())
    user: Id
    item: Id
    event: Kind = Field("click", description="dislike and hide: the item is not recommended to this user again")
    value: Value | None = Field(None, description="the rating, for event=rating")
    time: Annotated[StrictInt, Field(ge=1, le=2**53)] | None = Field(None, description="unix seconds; default: now")
    model: Name | None = Field(None, description="that recommended the item, as in the answer of /recommend")
    key: Annotated[StrictStr, Field(min_length=1, max_length=200)] | None = Field(
        None, description="an id of your own: an event that is sent again is stored once"
    )


class FeedbackBatch(Strict):
    """Several events, stored together or not at all."""

    events: Annotated[list[FeedbackEvent], Field(min_length=1, max_length=MOST_EVENTS)]


def _several(given: Any) -> str:
    """Which of the two forms of feedback is meant: a mistake in it is then told about that form alone."""
    events = isinstance(given, dict) and "events" in given
    return "several" if events or isinstance(given, FeedbackBatch) else "one"


Feedback = Annotated[
    Annotated[FeedbackEvent, Tag("one")] | Annotated[FeedbackBatch, Tag("several")], Discriminator(_several)
]


class ModelChange(Strict):
    """What to serve under a name; a file is loaded and checked before it replaces another one."""

    model_config = ConfigDict(strict=True)
    file: Annotated[StrictStr, Field(min_length=1, max_length=4096)] | None = Field(
        None, description="in a folder of the models that the service was started with", examples=["best.corank"]
    )
    share: Share | None = Field(None, description="of the users; the default model has those that are left")


# ---- answers -----------------------------------------------------------------------------------------------------


class Item(BaseModel):
    """An item with its title and labels, where the service knows them."""

    model_config = ConfigDict(extra="allow")
    item: int | str
    title: str | None = None


class Scored(Item):
    score: float


class Recommended(BaseModel):
    """The best items, in order."""

    model: str
    user: int | str | None = None
    items: list[Scored]
    events: int = Field(description="known items of the history and of stored feedback that the list is based on")
    skipped: list[int | str] = Field(
        default_factory=list, description="items of the history that the model does not know"
    )
    stale: bool = Field(False, description="feedback may be missing: the store could not be asked")
    notes: list[str] = Field(default_factory=list, description="values of `where` that no item has: probably mistyped")


class Reason(Item):
    """An item of the history that speaks for a recommendation, or against it (below 0)."""

    contribution: float = Field(description="to the score")
    share: float = Field(description="of all contributions: their absolute values add up to 1")


class Explained(Item):
    score: float
    reasons: list[Reason]
    rest: dict[str, float] = Field(description="parts of the score beside the history, such as a bias")


class Explanation(BaseModel):
    """Why items are recommended."""

    model: str
    user: int | str | None = None
    kind: str = Field(description="exact, decomposition, leave-one-out or attention")
    items: list[Explained]


class Similar(BaseModel):
    model: str
    item: Item
    items: list[Scored]


class Found(Item):
    rows: int = Field(description="interactions in the training data")


class FoundItems(BaseModel):
    model: str
    items: list[Found]


class FoundUser(BaseModel):
    user: int | str
    rows: int


class FoundUsers(BaseModel):
    model: str
    users: list[FoundUser]


class History(BaseModel):
    """What is known of a user, newest last."""

    model: str
    user: int | str
    trained: list[Item] = Field(description="items of the training data, the newest ones")
    feedback: list[Item] = Field(description="items since then")


class Stored(BaseModel):
    accepted: int = Field(description="events that are stored for good")
    unknown: list[int | str] = Field(
        default_factory=list, description="items that no model knows: their events count once a model does"
    )


class Label(BaseModel):
    name: str
    kind: str
    values: list[Any] = Field(description="the most frequent ones; for numbers the least and the largest")


class ServedModel(BaseModel):
    name: str
    kind: str
    file: str
    users: int
    items: int
    share: float
    loaded: int = Field(description="unix seconds")
    labels: list[Label]


class ServedModels(BaseModel):
    default: str
    models: list[ServedModel]


class Arm(BaseModel):
    """The counts of a model since the store was made; without a store, since the start."""

    model: str
    share: float
    impressions: int = Field(description="items in answers to users that the split gave this model")
    clicks: int = Field(description="feedback events on items: click, like, play, purchase, rating")


class Stats(BaseModel):
    answers: dict[str, float] = Field(description="answers by route")
    failed: dict[str, float] = Field(description="of these, those with a status of 500 or more")
    seconds: dict[str, float] = Field(description="quantiles of the latest recommendations")
    arms: list[Arm]
    time: float


class Health(BaseModel):
    status: str


class ProblemDocument(BaseModel):
    """What is wrong, in one sentence (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request: str | None = None
