"""MCP servers for tests, with the library of tests/clients.

server.py plain stdio | plain http | pages http

`plain` is a server as its authors write one. `pages` hands out tools that a test sets (POST /tools, a JSON list, as many on a page as
PAGE_SIZE says) and tells connected clients that they changed; GET /seen answers what it was asked; with GATE set, the second page waits for POST /go. Over HTTP the first
line is the URL. With TOKEN set, requests need it as a bearer token; PLAIN_GREETING changes a description, to tell that variables arrive.
"""

import json
import os
import socket
import sys

import anyio
import uvicorn
from mcp import types
from mcp.server import MCPServer, NotificationOptions, Server
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

PAGE_SIZE = int(os.environ.get("PAGE_SIZE", "2"))
TOKEN = os.environ.get("TOKEN")


def plain():
    server = MCPServer("plain", instructions="Reads and writes notes. Ask before you delete any.", version="1.2.3")

    @server.tool(description=f"Greets somebody: {os.environ.get('PLAIN_GREETING', 'hello')}.")
    def greet(name: str, loud: bool = False) -> str:
        return name.upper() if loud else name

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
    def find_notes(query: str, limit: int = 10) -> list[str]:
        """Finds notes by their words."""
        return [query] * limit

    return server


class Pages(Server):
    """Tools that a test sets."""

    def __init__(self):
        super().__init__("pages", version="7", on_list_tools=self.list_tools, instructions="Counts things.")
        self.tools, self.sessions, self.asked = [], [], []
        self.gate = anyio.Event()
        self.add_notification_handler("notifications/initialized", types.NotificationParams, self.initialized)

    def create_initialization_options(self, notification_options=None, *rest, **more):
        return super().create_initialization_options(NotificationOptions(tools_changed=True), *rest, **more)

    async def initialized(self, ctx, params):
        self.sessions.append(ctx.session)

    async def list_tools(self, ctx, params):
        cursor = params.cursor if params else None
        self.asked.append(cursor)
        start = int(cursor or 0)
        if cursor and os.environ.get("GATE"):
            await self.gate.wait()
        end = start + PAGE_SIZE
        tools = [types.Tool.model_validate(tool) for tool in self.tools[start:end]]
        return types.ListToolsResult(tools=tools, next_cursor=str(end) if end < len(self.tools) else None)

    async def set_tools(self, request):
        self.tools = await request.json()
        told = 0
        for session in list(self.sessions):
            try:
                await session.send_tool_list_changed()
                told += 1
            except Exception:  # A client that has left.
                self.sessions.remove(session)
        return JSONResponse({"told": told})

    async def go(self, request):
        self.gate.set()
        return JSONResponse({})

    async def seen(self, request):
        asked, self.asked = self.asked, []
        return JSONResponse({"cursors": asked, "sessions": len(self.sessions)})


def guarded(app):
    """Asks for the token on the MCP path."""

    async def checked(scope, receive, send):
        if scope["type"] == "http" and scope["path"] == "/mcp" and TOKEN:
            headers = dict(scope["headers"])
            if headers.get(b"authorization") != f"Bearer {TOKEN}".encode():
                refusal = Response("who are you", status_code=401, headers={"www-authenticate": "Bearer"})
                return await refusal(scope, receive, send)
        await app(scope, receive, send)

    return checked


async def serve(app):
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(guarded(app), log_level="error", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[bound])


kind, transport = sys.argv[1:]
if kind == "pages":
    pages = Pages()
    pages.tools = json.loads(os.environ.get("TOOLS", "[]"))
    routes = [Route("/tools", pages.set_tools, methods=["POST"]), Route("/go", pages.go, methods=["POST"]), Route("/seen", pages.seen)]
    anyio.run(serve, pages.streamable_http_app(custom_starlette_routes=routes))
elif transport == "http":
    anyio.run(serve, plain().streamable_http_app())
else:
    plain().run("stdio")
