"""Serve the built book on this machine, compressed as a web server would: `make serve`."""

import argparse
import asyncio
import errno
import logging
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from check_book import BUILT
from tornado import httpserver, netutil, web

PORT = 8000
YEAR = 365 * 24 * 3600


class Files(web.StaticFileHandler):
    """Files of the book: kept for a year where the address names a version, asked for anew elsewhere."""

    def set_extra_headers(self, path: str) -> None:
        """Say how long a browser may keep the file."""
        versioned = self.get_query_argument("v", "") or self.get_query_argument("digest", "")
        keep = f"public, max-age={YEAR}, immutable" if versioned else "no-cache"
        self.set_header("Cache-Control", keep)

    def compute_etag(self) -> str | None:
        """Tell compressed files from plain ones: by the file, weakly."""
        tag = super().compute_etag()
        return f"W/{tag}" if tag else None


def application(folder: Path) -> web.Application:
    """The web application that serves a folder, gzipped where that helps."""
    settings = {"path": str(folder), "default_filename": "index.html"}
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
    return web.Application([(r"/(.*)", Files, settings)], compress_response=True)


def bind(port: int) -> list[socket.socket]:
    """Take a port of this machine, which nobody else reaches; 0 takes any that is free."""
    if not 0 <= port <= 65535:
        raise OSError("ports go from 0 to 65535")
    return netutil.bind_sockets(port, address="127.0.0.1")


async def serve(folder: Path, sockets: list[socket.socket]) -> None:
    """Serve `folder` until cancelled."""
    server = httpserver.HTTPServer(application(folder))
    server.add_sockets(sockets)
    try:
        await asyncio.Event().wait()
    finally:
        server.stop()
        await server.close_all_connections()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve `folder` in a thread at a free port, for tests and measurements; give the address."""
    sockets = bind(0)
    loop = asyncio.new_event_loop()
    task = loop.create_task(serve(folder, sockets))
    thread = threading.Thread(target=_run, args=(loop, task), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def _run(loop: asyncio.AbstractEventLoop, task: asyncio.Task) -> None:
    asyncio.set_event_loop(loop)
    with suppress(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", type=Path, default=BUILT, help="the folder of the built book")
    options.add_argument("--port", type=int, default=PORT, help=f"the port to listen at (default: {PORT})")
    chosen = options.parse_args(arguments)
    folder = chosen.folder.resolve()
    if not (folder / "index.html").exists():
        print(f"error: there is no book in {folder}; run `make book` first.", file=sys.stderr)
        return 1
    try:
        sockets = bind(chosen.port)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        why = "is taken" if taken else f"cannot be used ({error})"
        print(f"error: port {chosen.port} {why}; name another one: make serve PORT=8001", file=sys.stderr)
        return 1
    print(f"The book is at http://localhost:{sockets[0].getsockname()[1]}/ (Ctrl+C stops it)", flush=True)
    try:
        asyncio.run(serve(folder, sockets))
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
