"""A store over MCP at an HTTP server: the tools of a role, and nothing else. The official `mcp` package speaks here.

Which client calls, and with which role, its token says. A session that was asked a question has the tool `answer` too,
and sees the store as it was when it was asked. Over standard streams `stdio.py` does the same for one client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp import MCPError, types
from mcp.server import Server, ServerRequestContext

from kbgym.mcp import prompts_listed, resources_listed, templates_listed, tool_listed
from kbgym.serving.calling import Caller, call_tool
from kbgym.serving.learning.learner import Online
from kbgym.serving.mcp_offer import INSTRUCTIONS, prompt_offered, prompts_offered, resources_offered
from kbgym.serving.provenance import resource
from kbgym.trace.live import LiveStore

Context = ServerRequestContext[Any, Any]


def make_server(
    live: LiveStore, online: Online | None, caller_of: Callable[[Context], Caller], version: str
) -> Server[Any]:
    """A server for one process; every request is answered for the caller it came from. Questions need `online`."""

    async def list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools = [types.Tool.model_validate(tool_listed(tool)) for tool in caller_of(context).tools]
        return types.ListToolsResult(tools=tools)

    async def call(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        result = await call_tool(live, online, caller_of(context), params.name, params.arguments or {})
        return types.CallToolResult(content=[types.TextContent(type="text", text=result.text)], is_error=result.wrong)

    async def list_prompts(context: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        listed = prompts_listed(prompts_offered(caller_of(context).role))
        return types.ListPromptsResult.model_validate({"prompts": listed})

    async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if (text := prompt_offered(caller_of(context).role, params.name)) is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such prompt here.")
        said = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(messages=[said])

    def addresses(context: Context) -> dict[str, str]:
        caller = caller_of(context)
        return resources_offered(caller.role, caller.question is not None)

    async def list_resources(context: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate({"resources": resources_listed(addresses(context))})

    async def list_templates(
        context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        found = {"resourceTemplates": templates_listed(addresses(context))}
        return types.ListResourceTemplatesResult.model_validate(found)

    async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        caller = caller_of(context)
        text = await resource(live, online, caller.role, caller.question is not None, params.uri)
        if text is None:
            raise MCPError(types.INVALID_PARAMS, "there is nothing at this address.")
        found = types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[found])

    return Server(
        "kbgym",
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
