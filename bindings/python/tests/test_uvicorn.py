# SPDX-License-Identifier: Apache-2.0
"""An unchanged FastAPI application on a real server, over real sockets."""
import asyncio
import contextlib

import pytest
from conftest import policy

import admit
from admit.asgi import AdmitMiddleware

uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
fastapi = pytest.importorskip("fastapi", reason="fastapi is not installed")
POOL = {"pool": "p"}


def application():
    from fastapi import FastAPI, Request
    from fastapi.responses import StreamingResponse

    app = FastAPI()

    @app.post("/size")
    async def size(request: Request):
        return {"size": len(await request.body())}

    @app.get("/stream")
    async def stream():
        async def forever():
            while True:
                yield b"data: x\n\n"
                await asyncio.sleep(0.001)
        return StreamingResponse(forever(), media_type="text/event-stream")

    return app


@contextlib.asynccontextmanager
async def server(app):
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", loop="asyncio")
    made = uvicorn.Server(config)
    made.install_signal_handlers = lambda: None
    task = asyncio.ensure_future(made.serve())
    while not made.started:
        assert not task.done()
        await asyncio.sleep(0.001)
    try:
        yield made.servers[0].sockets[0].getsockname()[1]
    finally:
        made.should_exit = made.force_exit = True
        await task


async def ask(reader, writer, method, path, body=b"", chunks=1):
    writer.write(("%s %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (method, path, len(body))).encode())
    step = max(1, len(body) // chunks)
    for at in range(0, len(body), step):
        writer.write(body[at:at + step])
        await writer.drain()
    status = int((await reader.readline()).split()[1])
    headers = {}
    while (line := await reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", 0))
    return status, headers, await reader.readexactly(length)


def run(work):
    async def whole():
        with admit.Gate(policy()) as gate:
            app = application()
            app.add_middleware(AdmitMiddleware, gate=gate, classify=lambda scope, body: POOL)
            async with server(app) as port:
                await work(gate, port)
    asyncio.run(asyncio.wait_for(whole(), 90))


async def until_free(gate):
    while gate.read("busy", POOL):
        await asyncio.sleep(0.001)


def test_keep_alive_bodies_and_denials():
    async def work(gate, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for size, chunks in ((0, 1), (4096, 1), (1 << 20, 16), (7, 7)):
            status, _, body = await ask(reader, writer, "POST", "/size", b"x" * size, chunks)
            assert status == 200 and body == b'{"size":%d}' % size
        await until_free(gate)
        leases = [gate.admit(POOL).lease for _ in range(2)]
        status, headers, body = await ask(reader, writer, "POST", "/size", b"x")
        assert status == 429 and b'"concurrency_exceeded"' in body and "x-admission-decision-id" in headers
        for lease in leases:
            lease.release()
        # The connection goes on after a denial.
        assert (await ask(reader, writer, "POST", "/size", b"xy"))[2] == b'{"size":2}'
        writer.close()
    run(work)


def test_a_client_that_leaves_in_mid_stream_frees_its_lease():
    async def work(gate, port):
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n")
            await reader.readuntil(b"data: x")
            assert gate.read("busy", POOL) == 1
            writer.transport.abort()
            await until_free(gate)
        assert gate.describe().expired == 0
    run(work)


def test_a_client_that_leaves_while_it_sends():
    async def work(gate, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /size HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.transport.abort()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await ask(reader, writer, "POST", "/size", b"x"))[0] == 200
        await until_free(gate)
        writer.close()
    run(work)
