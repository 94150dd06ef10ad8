"""The pool of workers: two TaskManagers that share one, and the variables that it has."""

import json
import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess

import grpc
import pytest
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc, endpoints_pb2

from rankbeam.pipelines.portable import worker_pool

LIVES_S = 600.0


@pytest.fixture
def started() -> Iterator[list[BaseProcess]]:
    """The processes that the pool of this test has started."""
    processes: list[BaseProcess] = []
    yield processes
    for process in processes:
        process.kill()
        process.join()


@pytest.fixture
def address(started: list[BaseProcess]) -> Iterator[str]:
    def start(*_: str) -> BaseProcess:
        started.append(multiprocessing.get_context("forkserver").Process(target=time.sleep, args=(LIVES_S,)))
        started[-1].start()
        return started[-1]

    server, pool, port = worker_pool.start_server(0, start)
    yield f"localhost:{port}"
    server.stop(0)
    pool.close()
    assert not any(process.is_alive() for process in started)


def task_manager(address: str) -> grpc.Channel:
    """A connection of its own."""
    return grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)])


def start(channel: grpc.Channel, worker_id: str) -> None:
    stub = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel)
    control = endpoints_pb2.ApiServiceDescriptor(url="localhost:1")
    answer = stub.StartWorker(beam_fn_api_pb2.StartWorkerRequest(worker_id=worker_id, control_endpoint=control))
    assert not answer.error


def stop(channel: grpc.Channel, worker_id: str) -> None:
    stub = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel)
    stub.StopWorker(beam_fn_api_pb2.StopWorkerRequest(worker_id=worker_id))


def test_a_task_manager_stops_its_own_worker(address: str, started: list[BaseProcess]) -> None:
    with task_manager(address) as one, task_manager(address) as other:
        start(one, "1-1")
        start(other, "1-1")
        stop(one, "1-1")
        assert [process.is_alive() for process in started] == [False, True]
        start(one, "2-1")
        stop(other, "1-1")
        assert [process.is_alive() for process in started] == [False, False, True]


def test_a_worker_that_has_ended_by_itself_is_not_taken_for_another(address: str, started: list[BaseProcess]) -> None:
    with task_manager(address) as one, task_manager(address) as other:
        start(one, "1-1")
        start(other, "1-1")
        started[0].kill()
        started[0].join()
        stop(one, "1-1")
        assert started[1].is_alive()
        stop(other, "1-1")
        assert not started[1].is_alive()


def test_a_connection_that_is_new_stops_no_worker_of_another(address: str, started: list[BaseProcess]) -> None:
    with task_manager(address) as one, task_manager(address) as other, task_manager(address) as new:
        start(one, "1-1")
        start(other, "1-1")
        stop(new, "1-1")  # whose it is cannot be known
        assert [process.is_alive() for process in started] == [True, True]
        stop(other, "1-1")
        stop(new, "1-1")  # there is one left
        assert [process.is_alive() for process in started] == [False, False]


def test_it_names_the_variables_that_it_lacks(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "value")
    monkeypatch.setenv("BLANK", " ")
    with task_manager(address) as channel:
        ask = channel.unary_unary(worker_pool.VARIABLES)
        assert json.loads(ask(json.dumps(["HERE", "BLANK", "ABSENT"]).encode())) == ["BLANK", "ABSENT"]


def test_a_port_that_is_taken_is_refused(address: str) -> None:
    with pytest.raises(RuntimeError):
        worker_pool.start_server(int(address.rpartition(":")[2]), worker_pool.start_worker)


def test_a_pool_that_has_ended_starts_no_worker() -> None:
    server, pool, port = worker_pool.start_server(0, worker_pool.start_worker)
    pool.close()
    with task_manager(f"localhost:{port}") as channel:
        stub = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel)
        answer = stub.StartWorker(beam_fn_api_pb2.StartWorkerRequest(worker_id="1-1"))
    server.stop(0)
    assert "has ended" in answer.error
