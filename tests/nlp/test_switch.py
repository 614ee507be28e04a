"""`apply_sse` on real architectures at toy size: which ids are replaced, when, and that everything else stays."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from corank.errors import CorankError  # noqa: E402
from corank.nlp import apply_neftune, apply_sse, nearest_graph, remove_sse, token_graph  # noqa: E402
from corank.nn.sse import Graph, SharedEmbedding  # noqa: E402
from language_models import FIXED, IDS, bart, bert, looked_up, seen  # noqa: E402


def test_bert_in_training_only_and_undone() -> None:
    model = bert().train()
    table = model.get_input_embeddings()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with apply_sse(model, p=0.5, reserved=FIXED) as sse:
        assert sse.tables == ["embeddings.word_embeddings"]
        ids = torch.cat([torch.zeros(20, 3, dtype=torch.int64), IDS], dim=1)
        (got,) = looked_up(model, table, ids)
        assert (got[:, :3] == 0).all()
        changed = (got[:, 3:] != IDS).float().mean().item()
        assert abs(changed - 0.5 * 46 / 47) < 0.05  # 900 draws of 47 ids, standard deviation .017
        assert not torch.isin(got[:, 3:], torch.tensor(FIXED)).any()
        model.eval()
        assert torch.equal(looked_up(model, table, input_ids=IDS)[0], IDS)
    model.train()
    assert torch.equal(looked_up(model, table, IDS)[0], IDS)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_special_ids_come_from_tokenizer_and_configuration(tmp_path, caplog) -> None:
    """Also from the tokenizer that was saved beside the weights; rows behind its last id are not drawn."""
    words = {word: at for at, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(40))])}
    tokenizer = transformers.BertTokenizer(vocab=words)
    model = bert(eos_token_id=7)
    model.save_pretrained(tmp_path)
    stored = transformers.BertModel.from_pretrained(tmp_path)
    with apply_sse(stored, p=1.0):
        assert "special tokens" in caplog.text  # nothing beside it yet: the configuration alone
        assert _kept(stored) == {0, 7}
    tokenizer.save_pretrained(tmp_path)
    stored = transformers.BertModel.from_pretrained(tmp_path)
    for options in ({}, {"tokenizer": tokenizer}):
        with apply_sse(stored, p=1.0, **options):
            assert _kept(stored) == {0, 1, 2, 3, 4, 7, *range(45, 50)}


def _kept(model: nn.Module) -> set[int]:
    """Ids that are never replaced at p = 1, where each other id stays itself with probability 1/N at most."""
    ids = torch.arange(50).repeat(40, 1)
    (got,) = looked_up(model.train(), model.get_input_embeddings(), ids)
    kept = set(torch.nonzero((got == ids).all(0))[:, 0].tolist())
    assert not torch.isin(got[:, [i for i in range(50) if i not in kept]], torch.tensor(sorted(kept))).any()
    return kept


def test_encoder_and_decoder_and_tied_weights() -> None:
    model = bart().train()
    with apply_sse(model, p=1.0, reserved=()):
        parts = [model.model.encoder.embed_tokens, model.model.decoder.embed_tokens]
        with seen(parts[0]) as source, seen(parts[1]) as target:
            model(input_ids=IDS, decoder_input_ids=IDS)
        drawn = [ids for ids in (*source, *target)]
        assert len({id(one) for one in drawn}) == 2
        assert all((ids != IDS).float().mean() > 0.9 for ids in drawn)
        assert model.lm_head.weight.data_ptr() == parts[0].weight.data_ptr() == parts[1].weight.data_ptr()


def test_tables_of_an_adapter_see_the_same_ids() -> None:
    """A low-rank adapter around a table looks ids up as well: with other ids, its gradients went to other rows."""
    peft = pytest.importorskip("peft")
    for wrap in (
        {"target_modules": ["word_embeddings", "query"]},
        {"target_modules": ["query"], "modules_to_save": ["word_embeddings"]},
        {"target_modules": ["query"]},
    ):
        model = peft.get_peft_model(bert("BertForMaskedLM"), peft.LoraConfig(r=2, **wrap)).train()
        core = next(
            m
            for n, m in model.named_modules()
            if isinstance(m, nn.Embedding) and m.num_embeddings == 50 and "original" not in n
        )
        with apply_sse(model, p=1.0, reserved=()) as sse:
            assert len(sse.tables) == 1
            (got,) = looked_up(model, core, input_ids=IDS)
            assert (got != IDS).float().mean() > 0.9
            if "word_embeddings" in wrap["target_modules"]:
                (got,) = looked_up(model, core, input_ids=IDS[:1, :3], backward=True)
                adapter = next(p for n, p in model.named_parameters() if "lora_embedding_A" in n)  # [rank, ids]
                assert set(adapter.grad.abs().sum(0).nonzero()[:, 0].tolist()) == set(got.flatten().tolist())


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputation_sees_the_same_ids(reentrant) -> None:
    """A table inside of a checkpoint is looked up again in the backward pass: gradients must be of the rows used."""
    torch.manual_seed(0)
    table, head = nn.Embedding(50, 4), nn.Linear(4, 1)
    model = nn.Sequential(table, head).train()
    dummy = torch.ones(1, requires_grad=True)  # a re-entrant checkpoint needs an input with a gradient
    with apply_sse(model, p=0.5), seen(table) as ids:
        checkpoint(lambda x, one: model(x) * one, IDS, dummy, use_reentrant=reentrant).sum().backward()
    assert len(ids) == 2
    assert torch.equal(ids[0], ids[1])
    rows = torch.zeros(50).index_add_(0, ids[0].flatten(), torch.ones(ids[0].numel()))
    torch.testing.assert_close(table.weight.grad, rows[:, None] * head.weight)


def test_gradient_checkpointing_of_transformers() -> None:
    model = bert("BertForMaskedLM").train()
    grads = []
    for on in (False, True):
        if on:
            model.gradient_checkpointing_enable()
        model.zero_grad()
        torch.manual_seed(3)
        with apply_sse(model, p=0.5, reserved=FIXED):
            model(input_ids=IDS[:2], labels=IDS[:2]).loss.backward()
        grads.append(model.get_input_embeddings().weight.grad.clone())
    torch.testing.assert_close(grads[0], grads[1])


def test_saved_copied_and_wrapped(tmp_path) -> None:
    model = bert("BertForMaskedLM").train()
    plain = {name: value.clone() for name, value in model.state_dict().items()}
    handle = apply_sse(model, p=1.0, reserved=FIXED)
    model.save_pretrained(tmp_path)
    loaded = transformers.BertForMaskedLM.from_pretrained(tmp_path)
    assert loaded.state_dict().keys() == plain.keys()
    assert remove_sse(loaded) == 0
    twin = copy.deepcopy(model)  # has SSE of its own
    handle.remove()
    assert (looked_up(twin, twin.get_input_embeddings(), input_ids=IDS)[0] != IDS).any()
    assert remove_sse(twin) == 1
    assert torch.equal(looked_up(twin, twin.get_input_embeddings(), input_ids=IDS)[0], IDS)


def test_distributed_wrapper(tmp_path) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        model = bert("BertForMaskedLM").train()
        wrapped = nn.parallel.DistributedDataParallel(model)
        with apply_sse(wrapped, p=1.0, reserved=FIXED, p_target=0.5):
            (got,) = looked_up(wrapped, model.get_input_embeddings(), input_ids=IDS, labels=IDS)
        assert (got != IDS).float().mean() > 0.9
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("before", [True, False])
def test_compiled(before) -> None:
    """Whether SSE is switched on before or after compiling, and off again afterwards."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 4), nn.Linear(4, 2)).train()
    if before:
        handle = apply_sse(model, p=1.0)
        run = torch.compile(model, backend="eager", fullgraph=True)
    else:
        run = torch.compile(model, backend="eager", fullgraph=True)
        handle = apply_sse(run, p=1.0)
    truth = model.eval()(IDS)
    assert torch.equal(run(IDS), truth)
    model.train()
    assert not torch.equal(run(IDS), truth)
    assert not torch.equal(run(IDS), run(IDS))  # new draws each time
    handle.remove()
    assert torch.equal(run(IDS), truth)


def test_embedding_bag_and_keywords() -> None:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.EmbeddingBag(50, 4, padding_idx=0, mode="sum")

        def forward(self, ids):
            return self.words(input=ids, per_sample_weights=torch.ones(ids.shape))

    model = Bag().train()
    with apply_sse(model, p=1.0):
        ids = torch.cat([torch.zeros(20, 2, dtype=torch.int64), IDS], 1)
        (got,) = looked_up(model, model.words, ids)
        assert (got[:, :2] == 0).all()
        assert (got[:, 2:] != IDS).float().mean() > 0.9
        assert (got[:, 2:] > 0).all()


def test_graph_of_neighbours_and_of_words() -> None:
    angle = torch.arange(12) * (2 * torch.pi / 12)
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    indptr, near = nearest_graph(circle, k=2)
    assert [sorted(row) for row in near.view(12, 2).tolist()] == [
        sorted([(i - 1) % 12, (i + 1) % 12]) for i in range(12)
    ]
    model = nn.Sequential(nn.Embedding(12, 2, padding_idx=0)).train()
    ids = torch.arange(12).repeat(200, 1)
    with apply_sse(model, p=1.0, graph=(indptr, near), rho=1e9):
        (got,) = looked_up(model, model[0], ids)
    step = (got - ids).abs() % 10  # 11 and 0 are neighbours
    assert (got[:, 0] == 0).all()
    assert (step[:, 2:11] == 1).all()
    assert (got[:, 1] == 2).all()  # its other neighbour is the padding
    words = transformers.BertTokenizer(
        vocab={w: i for i, w in enumerate(["[PAD]", "[UNK]", "good", "great", "bad", "##ly"])}
    )
    indptr, near = token_graph([("good", "great"), ("bad", "badly"), ("good", "unheard")], 6, words)
    assert near.tolist() == [3, 2]
    assert indptr.tolist() == [0, 0, 0, 1, 2, 2, 2]


def test_noise_is_that_of_transformers() -> None:
    from transformers.integrations.neftune import neftune_post_forward_hook

    table = nn.Embedding(50, 4).train()
    torch.manual_seed(1)
    with apply_neftune(nn.Sequential(table), alpha=5.0):
        ours = table(IDS)
    table.neftune_noise_alpha = 5.0
    torch.manual_seed(1)
    torch.testing.assert_close(ours, neftune_post_forward_hook(table, None, table(IDS)))
    table.eval()
    with apply_neftune(nn.Sequential(table), alpha=5.0):
        assert torch.equal(table(IDS), table.weight[IDS])


class TwoTables(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(10, 2), nn.Embedding(20, 2)


LINE = nn.Sequential(nn.Embedding(10, 2))
NO_EDGES = Graph(torch.zeros(11, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
EDGE = ([0, 1, 2, 2], [1, 0])


@pytest.mark.parametrize(
    ("make", "options", "sentence"),
    [
        (lambda: nn.Linear(2, 2), {}, "has no embeddings"),
        (lambda: [1], {}, "needs a torch.nn.Module"),
        (TwoTables, {}, "has 2 embeddings .*tables=\\['words'\\]"),
        (TwoTables, {"tables": "word"}, "did you mean 'words'"),
        (TwoTables, {"tables": []}, "names no embedding"),
        (lambda: LINE, {"p": 1.5}, "p=1.5.*between 0 and 1"),
        (lambda: LINE, {"p": True}, "p=True"),
        (lambda: LINE, {"p": float("nan")}, "p=nan"),
        (lambda: LINE, {"p": "0.1"}, "p='0.1'"),
        (lambda: LINE, {"reserved": [10]}, "reserved id 10 is not one of the table '0': its ids are 0 to 9"),
        (lambda: LINE, {"reserved": range(10)}, "all 10 ids are reserved"),
        (lambda: LINE, {"reserved": ["[CLS]"]}, "reserved holds '\\[CLS\\]'"),
        (lambda: LINE, {"graph": tuple(map(torch.tensor, EDGE))}, "graph is of 3 ids and the table has 10"),
        (lambda: LINE, {"graph": NO_EDGES, "reserved": [1]}, "made for other reserved ids"),
        (lambda: LINE, {"p_target": 0.1}, "no model of transformers"),
        (lambda: LINE, {"tokenizer": "bert"}, "without all_special_ids"),
        (lambda: nn.Sequential(SharedEmbedding(10, 2)), {}, "has SSE already"),
        (lambda: bert(), {"p_target": 0.1, "reserved": ()}, "BertModel takes no labels"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(make, options, sentence) -> None:
    model = make()
    with pytest.raises(CorankError, match=sentence) as error:
        apply_sse(model, **options)
    assert "\n" not in str(error.value)
    if isinstance(model, nn.Module):
        assert remove_sse(model) == 0  # nothing was changed


def test_applied_twice() -> None:
    model = nn.Sequential(nn.Embedding(10, 2))
    handle = apply_sse(model)
    with pytest.raises(CorankError, match="already has SSE"):
        apply_sse(model)
    handle.remove()
    handle.remove()  # does nothing
    apply_sse(model).remove()


def test_inference_mode_and_no_probability() -> None:
    model = nn.Sequential(nn.Embedding(10, 2))
    state = torch.get_rng_state()
    with apply_sse(model, p=0.0):
        model.train()(IDS % 10)
    with apply_sse(model.eval(), p=1.0), torch.inference_mode():
        assert torch.equal(model(IDS % 10), model[0].weight[IDS % 10])
    assert torch.equal(torch.get_rng_state(), state)
