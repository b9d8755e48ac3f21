"""A step of training, held against the formulas of its source and Megatron-LM's numbering."""

import numpy as np
import pytest

from hopmap.api.workload import Workload
from hopmap.simulator import lower, simulate
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.topologies import topology_from_spec
from hopmap.traces import TraceError
from hopmap.traces.patterns.training import (
    MODELS,
    Groups,
    TrainingSource,
    parse_training,
)
from hopmap.traces.sources import open_source
from support import about

SMALL = "layers=4,hidden=64,sequence=32,vocabulary=128,batch=2"


def test_models_have_as_many_parameters_as_they_are_called_by():
    """Table 1: parameters in billions, to the digit that is printed; GPT-3 has 175 billion."""
    for name in MODELS:
        with about(name):
            billions = parse_training(f"model={name}").parameters() / 1e9
            digits = len(name.removesuffix("b").partition(".")[2])
            assert f"{billions:.{digits}f}b" == name


def test_ranks_are_numbered_as_megatron_does():
    """The groups that `initialize_model_parallel` lists for 16 GPUs, tensors by 2, 4 stages."""
    groups = Groups(parse_training(f"{SMALL},tp=2,pp=4,dp=2"))
    members = [tuple(each.tolist()) for each in groups.communicators]
    pairs = [(2 * k, 2 * k + 1) for k in range(8)]
    replicas = [(0, 2), (1, 3), (4, 6), (5, 7), (8, 10), (9, 11), (12, 14), (13, 15)]
    first_and_last = [(k, k + 12) for k in range(4)]
    assert members == pairs + replicas + first_and_last


def test_experts_are_shared_by_neighbouring_replicas():
    groups = Groups(parse_training(f"{SMALL},tp=2,dp=4,ep=2,experts=4"))
    members = {tuple(each.tolist()) for each in groups.communicators}
    assert {(0, 2), (1, 3), (4, 6), (5, 7)} <= members  # the same experts' tokens
    assert {(0, 4), (1, 5), (2, 6), (3, 7)} <= members  # the same experts' gradients


@pytest.mark.parametrize("recompute", [0, 1])
@pytest.mark.parametrize(
    "parallel", ["", ",tp=2", ",pp=4", ",tp=2,pp=2,dp=2", ",cp=4", ",cp=2,tp=2"]
)
def test_operations_are_those_of_equation_3(parallel, recompute):
    """96 B s l h^2 (1 + s / 6h + V / 16 l h), 72 without recomputation of activations."""
    of = parse_training(f"{SMALL},microbatches=8,flops=1 Gflop/s,recompute={recompute}{parallel}")
    trace = TrainingSource("x", of).trace()
    done = trace.time[trace.offsets[1:] - 1].sum()  # a rank's times are its own computation
    sequences, s, h, v = of.batch * of.microbatches * of.dp, of.sequence, of.hidden, of.vocabulary
    layers = of.layers * (24 * h * h + 4 * s * h) * (3 + recompute)
    assert done * 1e9 == pytest.approx(sequences * s * (layers + 6 * h * v), rel=1e-4)
    if recompute:
        formula = 96 * sequences * s * of.layers * h**2
        formula *= 1 + s / (6 * h) + v / (16 * of.layers * h)
        assert done * 1e9 == pytest.approx(formula, rel=1e-4)


def test_tensor_parallel_ranks_send_what_section_3_2_says():
    """8 b s h (t - 1) / t elements of a layer and a microbatch, where rings add up."""
    of = parse_training(f"{SMALL},tp=4,microbatches=3")
    sent = lower(TrainingSource("x", of).calls(), {"allreduce": "ring"}).traffic()
    elements = 8 * of.batch * of.sequence * of.hidden * 3 / 4 * of.layers * of.microbatches
    by_rank = np.bincount(sent.src, sent.bytes, of.tp)
    assert by_rank.tolist() == [elements * of.element] * 4


def test_stages_pass_b_s_h_elements_on_and_back():
    of = parse_training(f"{SMALL},tp=2,pp=4,dp=2,microbatches=5")
    program = lower(TrainingSource("x", of).calls())
    traffic = TrainingSource("x", of).traffic()
    assert program.p2p_traffic().same_as(traffic)
    assert lower(TrainingSource("x", of).trace()).p2p_traffic().same_as(traffic)
    assert set(np.abs(traffic.src - traffic.dst).tolist()) == {of.tp * of.dp}
    assert set(traffic.bytes.tolist()) == {5 * 2 * 32 * 64 * of.element}


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 1), (2, 6), (4, 3), (4, 8)])
def test_the_pipeline_has_the_bubble_of_section_2_2_1(stages, microbatches):
    """(m + p - 1) (t_f + t_b) on a network that takes no time."""
    of = parse_training(
        f"layers={stages},hidden=64,sequence=64,vocabulary=1,pp={stages},"
        f"microbatches={microbatches},flops=1 Mflop/s"
    )
    quick = dict.fromkeys(("overhead_send", "overhead_recv", "injection_latency"), 0.0)
    network = topology_from_spec(f"cluster:{stages}")
    makespan = simulate(
        lower(TrainingSource("x", of).calls()),
        network,
        range(stages),
        parameters=Parameters(**quick),
    ).makespan
    layer = 24 * 64 * 64 * 64 + 4 * 64 * 64 * 64
    both = (1 + 3) * layer / 1e6
    assert makespan == pytest.approx((microbatches + stages - 1) * both, rel=0.01)


def test_gradients_are_added_up_among_those_that_have_the_same():
    """4 h^2 of attention, 8 h^2 of each expert, and the embedding at the first and last stage."""
    of = parse_training(f"{SMALL},dp=4,ep=2,experts=4,microbatches=1,topk=2")
    traffic = lower(
        TrainingSource("x", of).calls(), {"allreduce": "ring", "alltoall": "pairwise"}
    ).traffic()
    shared = (4 * of.layers * 64**2 + 64 * 128) * of.gradient
    own = 8 * 2 * of.layers * 64**2 * of.gradient
    tokens = 2 * of.activations * 4 * of.layers  # two all-to-alls forward, two backward
    by_rank = np.bincount(traffic.src, traffic.bytes, 4)
    assert by_rank.tolist() == [2 * shared * 3 / 4 + 2 * own / 2 + tokens / 2] * 4


def test_it_is_mapped_with_what_its_collectives_send():
    found = Workload(f"training:{SMALL},tp=2,pp=2").sent()
    assert found.expanded and "in collectives" in found.collectives_dominate
    assert not Workload(f"training:{SMALL},pp=4", collectives="ignore").sent().expanded


def test_what_makes_no_sense_is_refused():
    for text, said in [
        ("", "nothing: expected KEY=VALUE with one of model, tp, cp"),
        ("model=2b", "model 2b: expected 1.7b, 3.6b"),
        ("tp=0", "tp=0: expected 1 to 1,000,000,000"),
        ("layers=x", "layers=x: expected a whole number"),
        ("flops=fast", "flops='fast': expected"),
        ("width=4", "width=4: expected KEY=VALUE"),
        ("layers=5,pp=2", "layers 5: expected a multiple of pp 2"),
        ("hidden=6,tp=4", "hidden 6: expected a multiple of tp 4"),
        ("dp=3,ep=2,experts=2", "cp x dp 3: expected a multiple of ep 2"),
        ("sequence=6,cp=4", "sequence 6: expected a multiple of cp 4"),
        ("kv=6,tp=4", "kv 6: expected a multiple of tp 4"),
        ("dp=2,ep=2", "ep requires experts=NUMBER"),
        ("experts=1", "topk 2: expected at most 1 experts"),
        ("dp=99999999", "99999999 ranks: expected at most"),
    ]:
        with about(text, said), pytest.raises(TraceError, match=said):
            open_source(f"training:{text}")


def test_ranks_of_a_sequence_stand_between_tensors_and_replicas():
    """The groups that Megatron-LM's order "tp-cp-ep-dp-pp" lists for 16 GPUs by 2, 2, 2 and 2."""
    groups = Groups(parse_training(f"{SMALL},tp=2,cp=2,dp=2,pp=2"))
    members = [tuple(each.tolist()) for each in groups.communicators]
    assert (0, 1) in members and (0, 8) in members  # a tensor; the first and the last stage
    assert {(0, 2, 4, 6), (1, 3, 5, 7), (8, 10, 12, 14)} <= set(members)  # the same parameters


@pytest.mark.parametrize("cp", [2, 3, 4])
@pytest.mark.parametrize("kv", [0, 16])
def test_keys_and_values_go_round_the_ranks_of_a_sequence(cp, kv):
    """cp - 1 exchanges of 2 b s k / (cp tp) forward, backward as many with as many gradients."""
    of = parse_training(
        f"layers=4,hidden=64,sequence=48,vocabulary=128,batch=2,tp=2,cp={cp},dp=2,pp=2,"
        f"microbatches=5,kv={kv}"
    )
    source = TrainingSource("x", of)
    assert lower(source.calls()).p2p_traffic().same_as(source.traffic())
    assert lower(source.trace()).p2p_traffic().same_as(source.traffic())
    sent = source.traffic()
    ring = np.abs(sent.src - sent.dst) < of.apart
    elements = 2 * of.batch * of.sequence // cp * (kv or of.hidden) // of.tp
    times = 5 * of.layers // of.pp
    assert sent.bytes[ring].tolist() == [3 * (cp - 1) * elements * of.element * times] * of.ranks
    assert sent.messages[ring].tolist() == [(2 * cp - 1) * times] * of.ranks
    place = sent.src[ring] // of.tp % cp
    assert (sent.dst[ring] - sent.src[ring] == ((place + 1) % cp - place) * of.tp).all()


def test_a_sequence_that_is_shared_makes_everything_else_as_much_smaller():
    """Of a stage, a tensor and an expert b s / cp tokens; gradients of cp dp replicas."""
    apart, whole = (
        parse_training(f"layers=4,hidden=64,sequence={s},vocabulary=128,tp=2,ep=2,experts=4,{by}")
        for s, by in ((32, "cp=4"), (8, "dp=4"))
    )
    assert apart.activations == whole.activations
    names = {"allreduce": "ring", "alltoall": "pairwise"}
    sent, of_replicas = (
        lower(TrainingSource("x", of).calls(), names).traffic() for of in (apart, whole)
    )
    ring = 3 * 3 * apart.keys_and_values * 4 * apart.microbatches
    by_rank = [np.bincount(t.src, t.bytes, 8) for t in (sent, of_replicas)]
    assert (by_rank[0] - by_rank[1]).tolist() == [ring] * 8


def test_five_axes_together_send_what_their_formulas_add_up_to():
    """Bytes of 32 ranks, two for each axis but four replicas, rings and pairs carry them out."""
    words = "layers=4,hidden=64,sequence=32,vocabulary=128,batch=2,microbatches=3"
    of = parse_training(f"{words},tp=2,cp=2,pp=2,dp=4,ep=2,experts=4,topk=2")
    sent = lower(
        TrainingSource("x", of).calls(), {"allreduce": "ring", "alltoall": "pairwise"}
    ).traffic()
    b, s, h, layers, m = 2, 32 // 2, 64, 4 // 2, 3  # of a rank: its tokens, its layers
    tensor = 8 * b * s * h * 1 / 2 * layers * m * 2
    stages = b * s * h * m * 2
    context = 3 * (2 - 1) * 2 * b * s * h / 2 * layers * m * 2
    experts = 4 * (b * s * 2 * h / 2) * 1 / 2 * layers * m * 2
    attention = 2 * (8 - 1) / 8 * (4 * layers * h * h / 2 + 128 * h / 2) * 4
    own = 2 * (4 - 1) / 4 * (8 * layers * h * h * (4 / 2) / 2) * 4
    embedding = 2 * 1 / 2 * 128 * h / 2 * 4
    each = tensor + stages + context + experts + attention + own + embedding
    assert np.bincount(sent.src, sent.bytes, 32).tolist() == [each] * 32


def test_attention_to_a_sequence_is_computed_while_its_keys_go_round():
    """On a network as quick as that, a step takes as long as its computation."""
    words = "layers=2,hidden=64,sequence=512,vocabulary=64,cp=4,microbatches=2,flops=1 Gflop/s"
    source = TrainingSource("x", parse_training(words))
    quick = dict.fromkeys(("overhead_send", "overhead_recv", "injection_latency"), 0.0)
    program = lower(source.calls())
    found = simulate(
        program, topology_from_spec("cluster:4"), range(4), parameters=Parameters(**quick)
    )
    trace = source.trace()
    computed = trace.time[trace.offsets[1:] - 1]
    assert set(computed.tolist()) == {computed[0]}
    assert found.makespan == pytest.approx(computed[0], rel=0.01)
