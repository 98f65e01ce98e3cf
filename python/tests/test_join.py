"""A guest beside a scripted engine, with arrays of numpy: what the engine sees of its steps, and what it does to the guest's model."""

import os
import signal

import numpy
import pytest

from fake_engine import FakeEngine, planned
from troupe import RunEnded
from troupe import _frames as frames


class Sgd:
    """A step function with a state: the number of its steps."""

    def __init__(self, rate):
        self.rate = rate
        self.state = {"steps": 0}

    def __call__(self, params, gradients, factor):
        self.state["steps"] += 1
        for name in params:
            params[name] -= self.rate * factor * gradients[name]


def arrays():
    return {"w": numpy.arange(6, dtype=numpy.float32).reshape(2, 3), "b": numpy.float32([7]), "s": numpy.array(3, numpy.float32),
            "none": numpy.empty((0, 4), numpy.float32)}


def ones(params):
    return {name: numpy.ones_like(value) for name, value in params.items()}


def train(run, params, samples=8, size=4, epochs=1):
    seen = []
    for batch in run.batches(samples, size, epochs):
        seen.append(batch.tolist())
        run.step(2.5, ones(params))
    return seen


def test_arrays_live_in_the_vectors_of_the_run(join):
    def script(engine):
        parameters, _, _ = engine.welcome()
        assert engine.hello["tensors"] == [["w", [2, 3]], ["b", [1]], ["s", []], ["none", [0, 4]]]
        assert (engine.hello["optimizer"], engine.hello["mirrors"], engine.hello["statistics"]) == ("Sgd", False, [])
        assert len(engine.hello["program"]) == 16 and engine.hello["token"] == "0" * 32 and engine.hello["pid"] == os.getpid()
        assert engine.part(parameters, "w").tolist() == [[0, 1, 2], [3, 4, 5]] and engine.part(parameters, "s") == 3
        planned(engine)
        lease, loss, count, seconds = engine.step(7, [5, 1, 2, 3])
        assert (lease, loss, count) == (7, 2.5, 4) and seconds > 0
        assert engine.part(parameters, "b") == 7  # the strategy decides when the optimizer steps
        engine.optimize(0.5)
        assert engine.part(parameters, "b") == 7 - 0.25 * 0.5
        parameters[:] = 9  # an exchange
        assert engine.step(8, [0], optimize=2.0)[0] == 8  # the optimizer steps before DONE
        assert engine.part(parameters, "b") == 9 - 0.25 * 2
        engine.send(frames.LAST)
        assert engine.silent()

    with FakeEngine(script) as engine:
        params = arrays()
        run = join(engine, params=params, step=Sgd(0.25))
        assert (run.role, run.worker, run.workers) == ("worker", 1, 2)
        assert "TROUPE_GUEST" not in os.environ and "TROUPE_TOKEN" not in os.environ
        assert train(run, params) == [[5, 1, 2, 3], [0]]
        assert run.evaluate(lambda: pytest.fail("a worker evaluates")) is None
        run._link.close()
    assert params["w"].tolist() == [[8.5, 8.5, 8.5], [8.5, 8.5, 8.5]]


def test_gradients_that_come_back_are_what_the_function_steps_with(join):
    def script(engine):
        parameters, gradients, _ = engine.welcome(gradients=True, buckets=[["s", "none"], ["w", "b"]])
        planned(engine)
        engine.send_step(0, [0, 1])
        assert [engine.receive(frames.BUCKET) for _ in range(2)] == [b"\0\0\0\0", b"\1\0\0\0"]
        engine.receive(frames.DONE)
        assert engine.part(gradients, "w").tolist() == [[1, 1, 1], [1, 1, 1]] and gradients.sum() == 8
        gradients[:] = 4
        engine.optimize()
        assert engine.part(parameters, "b") == 7 - 0.25 * 4
        gradients[:] = 4
        engine.step(1, [2], optimize=1.0)  # no exchange: its own gradients, no bucket
        assert engine.part(parameters, "b") == 6 - 0.25 and (gradients == 4).all()
        engine.end()

    with FakeEngine(script) as engine:
        params = arrays()
        train(join(engine, params=params, step=Sgd(0.25)), params)


def test_an_array_put_in_anothers_place_goes_into_the_vector(join):
    def script(engine):
        parameters, _, _ = engine.welcome()
        assert engine.hello["optimizer"] is None
        planned(engine)
        engine.step(0, [0])
        assert engine.part(parameters, "b") == 6
        engine.optimize()  # the program has done it
        assert engine.part(parameters, "b") == 6
        parameters[:] = 1
        engine.step(1, [0])
        assert engine.part(parameters, "b") == 0
        engine.end()

    with FakeEngine(script) as engine:
        params = arrays()
        run = join(engine, params=params)
        for _ in run.batches(8, 4):
            params["b"] = params["b"] - 1
            run.step(0)


@pytest.mark.parametrize("change, message", [
    (lambda params: params.update(w=numpy.zeros((3, 3), numpy.float32)), r"params\['w'\] has shape \(3, 3\); it was of shape \(2, 3\)"),
    (lambda params: params.pop("w"), r"params\['w'\] is gone")])
def test_an_array_of_another_shape_is_named(join, change, message):
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.send_step(0, [0])
        assert engine.silent()

    with FakeEngine(script) as engine:
        params = arrays()
        run = join(engine, params=params)
        for _ in run.batches(8, 4):
            change(params)
            with pytest.raises(RuntimeError, match=message):
                run.step(0)
            break
        run._link.close()


def test_the_state_of_a_step_function_is_saved_and_loaded(join):
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.step(0, [0], optimize=1.0)
        state = engine.save()
        engine.step(1, [0], optimize=1.0)
        engine.load(state, piece=7)
        engine.load(b"")
        engine.end()

    with FakeEngine(script) as engine:
        params, function = arrays(), Sgd(0.25)
        train(join(engine, params=params, step=function), params)
    assert function.state == {"steps": 1}


def test_an_evaluator_evaluates_what_lies_in_its_vectors_until_the_end(join):
    def script(engine):
        parameters, _, _ = engine.welcome(role="evaluator")
        planned(engine)
        engine.send(frames.LAST)
        engine.receive(frames.WAITS)
        for value in (1, 2):
            parameters[:] = value
            engine.send(frames.EVALUATE, b"\0\0\0\0")
            assert engine.receive_json(frames.EVALUATED) == {"metrics": {"loss": value, "accuracy": None}}
        engine.end()

    with FakeEngine(script) as engine:
        params = arrays()
        run = join(engine, params=params)
        assert run.role == "evaluator"
        assert run.evaluate(lambda: pytest.fail("before the loop")) is None
        assert train(run, params) == []
        assert run.evaluate(lambda: {"loss": params["b"].sum(), "accuracy": float("nan")})["loss"] == 2
        assert run.evaluate(lambda: pytest.fail("after the end")) is None


@pytest.mark.parametrize("others, epochs", [({}, 2), ({"epochs": None}, 2), ({"epochs": 4}, 4)])
def test_epochs_and_progress_are_those_of_the_batch(join, others, epochs):
    def script(engine):
        engine.welcome(**others)
        planned(engine, epochs=2)
        engine.step(0, [0, 1, 2, 3], epoch=0, position=4)
        engine.step(1, [0, 1, 2, 3], epoch=1, position=4)
        engine.end()

    with FakeEngine(script) as engine:
        params = arrays()
        run = join(engine, params=params)
        seen = []
        for _ in run.batches(8, size=4, epochs=2):
            seen.append((run.epoch, run.progress))
            run.step(0)
    assert seen == [(0, 4 / (8 * epochs)), (1, 12 / (8 * epochs))]


def test_a_second_loop_is_empty_and_says_what_to_write(join, capsys):
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.send(frames.LAST)
        engine.silent()

    with FakeEngine(script) as engine:
        params = arrays()
        run = join(engine, params=params)
        assert train(run, params) == [] and train(run, params) == [] and train(run, params) == []
        assert capsys.readouterr().err.count("write run.batches(…, epochs=N)") == 1
        with pytest.raises(ValueError, match="a run has one plan"):
            run.batches(9, 4)
        run._link.close()


@pytest.mark.parametrize("code, reason", [(78, "another program than worker 0's"), (130, "interrupted")])
def test_the_ends_code_is_the_programs(join, capsys, code, reason):
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.step(0, [0])
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        engine.end(code, reason)

    before = signal.getsignal(signal.SIGINT)
    with FakeEngine(script) as engine:
        params = arrays()
        run = join(engine, params=params)
        with pytest.raises(RunEnded) as ended:
            train(run, params)
    assert ended.value.code == code and reason in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


def test_a_refusal_ends_the_program_before_it_begins(join, capsys):
    def script(engine):
        engine.receive(frames.HELLO)
        engine.end(78, "gossip needs an optimizer")

    with FakeEngine(script) as engine:
        with pytest.raises(RunEnded) as ended:
            join(engine, params=arrays())
    assert ended.value.code == 78 and "gossip needs an optimizer" in capsys.readouterr().err


def test_a_program_that_updates_itself_refuses_gradients(join):
    def script(engine):
        with pytest.raises(AssertionError, match="the guest left|FAILED"):
            engine.welcome(gradients=True)

    with FakeEngine(script) as engine:
        with pytest.raises(ValueError, match="give join"):
            try:
                join(engine, params=arrays())
            finally:
                engine.connection.shutdown(2)


def test_names_of_arrays_are_texts(join, monkeypatch):
    monkeypatch.setenv("TROUPE_GUEST", "never-reached")
    with pytest.raises(TypeError, match="params has the key 0: names of arrays are needed, as str"):
        join(None, params={0: numpy.zeros(2, numpy.float32)})


def test_a_batch_of_more_samples_than_there_are_is_one_of_all(join):
    def script(engine):
        engine.welcome()
        planned(engine, samples=8, batch=8)
        engine.step(0, list(range(8)), optimize=1.0)
        engine.end()

    params = arrays()
    with FakeEngine(script) as engine:
        assert train(join(engine, params=params, step=Sgd(0.25)), params, samples=8, size=64) == [list(range(8))]
    assert [len(batch) for batch in train(join(None, params=params, step=Sgd(0.25)), params, samples=8, size=64)] == [8]


def test_one_process_is_the_main_one(join):
    def script(role):
        def welcome(engine):
            engine.welcome(role=role)
            assert engine.silent()
        return welcome

    assert join(None, params=arrays()).is_main
    for role, main in (("worker", False), ("evaluator", True)):
        with FakeEngine(script(role)) as engine:
            run = join(engine, params=arrays())
            assert run.is_main == main
            run._link.close()


@pytest.mark.parametrize("name, other", [("tied", lambda w: w), ("row", lambda w: w[1]), ("turned", lambda w: w.T)])
def test_one_array_under_two_names_is_refused(join, monkeypatch, name, other):
    """After join() they would be two arrays."""
    monkeypatch.setenv("TROUPE_GUEST", "troupe-test-of-no-engine")
    params = arrays()
    params[name] = other(params["w"])
    with pytest.raises(ValueError, match=rf"params\['w'\] and params\['{name}'\] share memory"):
        join(None, params=params)


def test_views_of_one_array_that_do_not_meet_are_two(join):
    def script(engine):
        parameters, _, _ = engine.welcome()
        assert engine.part(parameters, "odd").tolist() == [1, 3, 5]
        planned(engine)
        engine.end()

    with FakeEngine(script) as engine:
        both, none = numpy.arange(6, dtype=numpy.float32), numpy.empty((0, 4), numpy.float32)
        train(join(engine, params={"even": both[::2], "odd": both[1::2], "none": none, "again": none}), {})


def test_without_an_engine_nothing_hangs(join, monkeypatch, capsys):
    monkeypatch.setenv("TROUPE_GUEST", "troupe-test-of-no-engine")
    with pytest.raises(RunEnded) as ended:
        join(None, params=arrays())
    assert ended.value.code == 75 and "troupe launch" in capsys.readouterr().err


@pytest.mark.parametrize("when", ["hello", "plan", "done"])
def test_an_engine_that_is_gone_ends_the_program(join, capsys, when):
    def script(engine):
        if when == "hello":
            engine.receive(frames.HELLO)
            return
        engine.welcome()
        planned(engine)
        if when == "done":
            engine.step(0, [0])

    with FakeEngine(script) as engine:
        params = arrays()
        with pytest.raises(RunEnded) as ended:
            train(join(engine, params=params), params)
    assert ended.value.code == 75 and "the engine has closed the connection" in capsys.readouterr().err


def test_misuse_is_named(join):
    run = join(None, params=arrays())
    with pytest.raises(RuntimeError, match="without a batch"):
        run.step(0)
    for wrong in ((0, 4), (8, 0), (8, 4, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            run.batches(*wrong)
    with pytest.raises(TypeError, match="size is 4.5"):
        run.batches(8, 4.5)
    loop = run.batches(8, 4)
    next(loop)
    with pytest.raises(RuntimeError, match="left without run.step"):
        next(loop)
    for wrong in ({}, {"params": {}, "model": 1}, {"params": {}, "optimizer": 1}, {"model": 1, "step": print}):
        with pytest.raises(TypeError, match="join"):
            join(None, **wrong)


def test_alone_every_sample_comes_once_in_an_epoch(join):
    params = arrays()
    run = join(None, params=params, step=Sgd(0.5), seed=3)
    seen = train(run, params, samples=10, size=4, epochs=2)
    assert [len(batch) for batch in seen] == [4, 4, 2, 4, 4, 2]
    for epoch in (seen[:3], seen[3:]):
        assert sorted(sum(epoch, [])) == list(range(10))
    assert seen[:3] != seen[3:]
    assert params["b"].tolist() == [7 - 6 * 0.5]
    assert run.evaluate(lambda: {"loss": 1.0}) == {"loss": 1.0}


def test_alone_a_second_loop_is_empty(join, capsys):
    run = join(None, params=arrays())
    assert len(train(run, arrays())) == 2 and train(run, arrays()) == []
    assert "epochs=N" in capsys.readouterr().err
