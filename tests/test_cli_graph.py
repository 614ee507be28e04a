"""`corank graph encode`: what it writes, and one sentence for each mistake."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from corank.cli import main
from corank.graph import encode, from_edges, load

EDGES = "source,target,weight\nann,bob,1\nbob,cy,2.5\nann,bob,1\ndan,dan,1\n"


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder: (exit code, standard error)."""
    monkeypatch.chdir(tmp_path)

    def call(line: str, **files: str) -> tuple[int, str]:
        for name, text in files.items():
            (tmp_path / f"{name}.csv").write_text(text)
        code = main(line.split())
        out, err = capsys.readouterr()
        assert out == ""
        return code, err

    return call


def test_the_file_is_what_python_makes(run):
    code, said = run("graph encode edges.csv -o dna.npz --depth 3 --capacity 50 --seed 5", edges=EDGES)
    assert code == 0
    assert "edges.csv: 4 nodes, 2 edges" in said
    dna, nodes = load("dna.npz")
    assert nodes.ids.tolist() == ["ann", "bob", "cy", "dan"]
    graph, _ = from_edges(["ann", "bob", "dan"], ["bob", "cy", "dan"])
    want = encode(graph, depth=3, capacity=50, seed=5)
    assert (dna.words == want.words).all()
    assert (dna.filter, dna.depth, dna.seed) == (want.filter, 3, 5)
    assert dna.contains(3, [0, 1, 2, 3]).tolist() == [False, False, False, True]  # dan is alone


def test_the_file_is_plain_arrays(run):
    run("graph encode edges.csv -o dna.npz", edges=EDGES)
    run("graph encode edges.csv -o bits.npz --sparse")
    with np.load("dna.npz", allow_pickle=False) as file:
        assert set(file) == {"words", "nodes", "slices", "width", "depth", "seed"}
        c = int(file["slices"] * file["width"])
        bits = np.unpackbits(file["words"].view(np.uint8), axis=1, bitorder="little", count=c)
        assert file["nodes"].dtype.kind == "U"
    sparse = scipy.sparse.load_npz("bits.npz")
    assert (sparse.toarray() == bits).all()
    assert np.load("bits.npz", allow_pickle=False)["nodes"].tolist() == ["ann", "bob", "cy", "dan"]


def test_options_reach_the_encoding(run):
    edges = "1 2\n2 3\n3 4\n2 5\n2 6\n"  # no header, blanks, integers
    run("graph encode e.csv -o d.npz --depth 1 --capacity 9 --error 0.2 --tight --theta 2 --directed", e=edges)
    dna, nodes = load("d.npz")
    assert nodes.ids.tolist() == [1, 2, 3, 4, 5, 6]
    graph, _ = from_edges([1, 2, 3, 2, 2], [2, 3, 4, 5, 6], directed=True)
    assert (dna.words == encode(graph, depth=1, capacity=9, error=0.2, tight=True, theta=2).words).all()
    assert (dna.words != encode(graph, depth=1, capacity=9, error=0.2, tight=True).words).any()


def test_columns_by_name_and_parquet(run):
    table = "when;to;who;strength\n1;b;a;3\n2;c;a;0\n"
    assert run("graph encode e.csv -o d.npz --source who --weight strength", e=table)[0] == 0
    assert load("d.npz")[0].contains(0, [1, 2]).tolist() == [True, False]  # a weight of 0 is no edge
    assert run("graph encode e.csv -o d.npz --source who --separator ;")[0] == 0
    assert load("d.npz")[0].contains(0, [1, 2]).tolist() == [True, True]  # without weights it is one
    pl.DataFrame({"Source": [1, 2], "Target": [2, 7]}).write_parquet("e.parquet")
    assert run("graph encode e.parquet -o p.npz")[0] == 0
    assert load("p.npz")[1].ids.tolist() == [1, 2, 7]


def test_one_edge_is_no_edges(run):
    said = run("graph encode e.csv -o d.npz", e="source,target\nann,bob\n")[1]
    assert "e.csv: source=source target=target (separator ',', header)" in said
    assert said.splitlines()[1] == "e.csv: 2 nodes, 1 edge"
    said = run("graph encode e.csv -o d.npz --directed", e="source,target\nann,ann\n")[1]
    assert said.splitlines()[1] == "e.csv: 1 node, 0 directed edges"


@pytest.mark.parametrize("option", ["--depth 0", "--capacity 0", "--error 2", "--theta 0", "--seed -1"])
def test_options_are_looked_at_before_the_table(run, option):
    name, value = option.removeprefix("--").split()
    assert f"{name}={value}" in run(f"graph encode nowhere.csv -o d.npz {option}")[1]


def test_full_filters_are_told(run):
    edges = "source,target\n" + "".join(f"0,{i}\n" for i in range(1, 200))
    code, said = run("graph encode e.csv -o d.npz --depth 2 --capacity 5", e=edges)
    assert code == 0
    assert "more than half of the bits are set" in said
    assert "half" not in run("graph encode e.csv -o d.npz --depth 2 --capacity 1000")[1]


@pytest.mark.parametrize(
    ("line", "edges", "words"),
    [
        (
            "",
            "source,target,weight\n1,2,-3\n",
            "line 2 of column 'weight' of 'e.csv': the edge '1' to '2' has the weight -3",
        ),
        ("", "source,target,weight\n1,2,x\n1,3,4\n", "line 2 of column 'weight' .* leave it out with weight=''"),
        ("", "source,target,weight\n1,2,nan\n1,3,4\n", "must be a finite number"),
        ("", "source,target\n1,\n2,3\n", r"column 'target' of 'e.csv' \(target\) has 1 missing"),
        ("", "source,target\n,1\n2,3\n", r"column 'source' of 'e.csv' \(source\) has 1 missing"),
        ("", "source,target,weight\n1,2,\n1,3,4\n", r"\(weight\) has 1 missing"),
        ("", "source,target\n1\n2,3\n", "line 2 .* has 1 field"),
        ("", "", "is empty: a row is at least the two ends of an edge"),
        ("", "source,target\n", "no rows"),
        ("", "user,user\n1,2\n2,3\n", "has two columns called 'user': call the ends of an edge source and target"),
        ("", "user,user\nann,bob\nbob,cy\n", "has two columns called 'user'"),
        ("", "a,b,c\nx,1,2\n", "cannot tell which column .* is the source .* it has a, b, c; call it source in"),
        ("", "to,b,c\nx,1,2\n", "cannot tell which column .* is the source .*`corank graph encode` has --source"),
        ("", "user,item,rating\nx,y,3\n", "has users and items .* an edge connects two users or two items"),
        ("--source targt", EDGES, "no column 'targt' for source; did you mean 'target'"),
        ("--source target --target target", EDGES, "cannot be two things"),
        ("--depth 0", EDGES, "depth=0: .* at least 1"),
        ("--depth two", EDGES, "it must be a whole number"),
        ("--capacity 0", EDGES, "capacity=0: .* at least 1"),
        ("--capacity 99999999999", EDGES, "too large: .* lower the capacity"),
        ("--error 0", EDGES, "error=0.0 is not a false-positive rate"),
        ("--theta 0", EDGES, "theta=0.0: .* at least 1"),
        ("--seed -1", EDGES, "seed=-1"),
        ("--dpth 3", EDGES, "not an option of `corank graph encode`; did you mean '--depth'"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_no_file(run, tmp_path, line, edges, words):
    code, said = run(f"graph encode e.csv -o d.npz {line}", e=edges)
    assert code == 2
    last = said.strip().splitlines()[-1]
    assert last.startswith("corank: ")
    assert re.search(words, last), last
    assert [p.name for p in tmp_path.iterdir()] == ["e.csv"]


def test_other_mistakes(run, tmp_path):
    assert "say what to do" in run("graph")[1]
    assert "there is no command 'graph encod'; did you mean 'encode'?" in run("graph encod e.csv -o d.npz")[1]
    for words in ("--directed true e.csv", "e.csv --directed FALSE"):
        assert "--directed takes no value, and" in run(f"graph encode {words} -o d.npz")[1]
    assert "--directed takes no value, and 'no' follows it" in run("graph encode e.csv --directed=no -o d.npz")[1]
    assert "does not exist" in run("graph encode none.csv -o d.npz")[1]
    assert "is a folder" in run(f"graph encode e.csv -o {tmp_path}", e=EDGES)[1]
    assert "the following arguments are required: -o" in run("graph encode e.csv")[1]
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing")
    assert "cannot be read as Parquet" in run("graph encode bad.parquet -o d.npz")[1]


def test_the_table_is_never_written_over(tmp_path, capsys):
    table = tmp_path / "edges.csv"
    table.write_text("source,target\nann,bob\nbob,cy\n")
    assert main(["graph", "encode", str(table), "-o", str(table)]) != 0
    assert "is an input file" in capsys.readouterr().err
    assert table.read_text() == "source,target\nann,bob\nbob,cy\n"
