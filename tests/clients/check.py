"""Loads what Toolrack sends into the types of the providers' Python libraries, and sends it through their clients.

Standard input: a JSON list of `{library, kind, label, value}`. Standard output: `{"checked": {kind: n}, "faults": [{kind, label,
fault}]}`. Nothing leaves the process: clients have a transport that answers by itself.

A kind is a function here; its name is `library kind`. It takes the value and raises what the library raises.
"""

import copy
import functools
import json
import re
import sys
import warnings
from collections.abc import Mapping

import anthropic
import anthropic.types
import botocore.loaders
import botocore.model
import botocore.validate
import httpx2
import jsonschema
import mcp_types
import mcp_types.methods
import openai
import openai.types.chat
import openai.types.responses
from anthropic.types.tool_param import InputSchemaTyped
from google import genai
from google.genai import types as gemini
from openai.lib._pydantic import _ensure_strict_json_schema
from pydantic import ConfigDict, TypeAdapter, ValidationError

# Nothing is guessed or dropped: a member that the library does not know is a fault, and so is a value of another type.
EXACTLY = ConfigDict(extra="forbid", strict=True)

KINDS = {}


def kind(name):
    def register(check):
        KINDS[name] = check
        return check

    return register


class Fault(Exception):
    """What no library says by itself."""


@functools.cache
def adapter(kind_of):
    return TypeAdapter(list[kind_of], config=EXACTLY)


def load(kind_of, values):
    each(values, lambda value: drain(adapter(kind_of).validate_python([value])))


def each(values, check):
    """Each alone, so that a fault tells which it is."""
    faults = []
    for value in values:
        try:
            check(value)
        except Exception as error:  # whatever a library raises is what it says of the value
            faults.append(f"{told(error)} in {brief(value)}")
    if faults:
        raise Fault("\n  ".join(faults[:5]))


def drain(value):
    """Iterables are validated only where they are read."""
    if isinstance(value, Mapping):
        for inner in value.values():
            drain(inner)
    elif not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        for inner in value:
            drain(inner)


def brief(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 400 else f"{text[:400]}…"


def told(error):
    """Of a union, what is said of the member that was most likely meant: one of the same type with the fewest faults."""
    if not isinstance(error, ValidationError):
        return str(error)
    by_member = {}
    for fault in error.errors(include_input=False):
        path = [part for part in fault["loc"] if not isinstance(part, int)]
        of_other = fault["type"] == "literal_error" and path[-1:] in (["type"], ["role"])
        by_member.setdefault("".join(path[:1]), []).append((of_other, f"{'.'.join(path)}: {fault['msg']}"))
    meant = min(by_member.values(), key=lambda faults: (any(of_other for of_other, _ in faults), len(faults)))
    return "; ".join(said for _, said in meant[:5])


@functools.cache
def check_schema_text(text):
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


def check_json_schema(schema):
    """Anthropic, OpenAI and MCP demand a schema of the draft 2020-12."""
    try:
        check_schema_text(json.dumps(schema))
    except jsonschema.SchemaError as error:
        raise Fault(f"no JSON Schema at {error.json_path}: {error.message[:200]}") from None


def sent(send, answer):
    """The body that a client sends when it is handed a transport that answers `answer`."""
    bodies = []

    def handle(request):
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, json=answer)

    with httpx2.Client(transport=httpx2.MockTransport(handle)) as http:
        send(http)
    return bodies[0]


def same(what, sent_value, value):
    if sent_value != value:
        raise Fault(f"the client sends other {what}: {brief(sent_value)} for {brief(value)}")


# Anthropic


def anthropic_request(**members):
    answer = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [], "stop_reason": "end_turn",
              "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    request = {"model": "claude", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}], **members}

    def send(http):
        client = anthropic.Anthropic(api_key="none", http_client=http, base_url="http://localhost")
        client.messages.create(**request)

    body = sent(send, answer)
    for member, value in members.items():
        same(member, body[member], value)


@kind("anthropic tools")
def anthropic_tools(tools):
    load(anthropic.types.ToolUnionParam, tools)
    own = [tool for tool in tools if "input_schema" in tool]
    # The library's type falls back to any object.
    each(own, lambda tool: adapter(InputSchemaTyped).validate_python([tool["input_schema"]]))
    each(own, lambda tool: check_json_schema(tool["input_schema"]))
    anthropic_request(tools=tools)


@kind("anthropic messages")
def anthropic_messages(messages):
    load(anthropic.types.MessageParam, messages)
    anthropic_request(messages=messages)


# OpenAI


def openai_request(method, answer, **members):
    def send(http):
        client = openai.OpenAI(api_key="none", http_client=http, base_url="http://localhost")
        method(client)(model="gpt", **members)

    body = sent(send, answer)
    for member, value in members.items():
        same(member, body[member], value)


def openai_chat(**members):
    answer = {"id": "c", "object": "chat.completion", "created": 0, "model": "gpt", "choices": []}
    request = {"messages": [{"role": "user", "content": "hi"}], **members}
    openai_request(lambda client: client.chat.completions.create, answer, **request)


def openai_responses(**members):
    answer = {"id": "r", "object": "response", "created_at": 0, "model": "gpt", "output": [], "tools": [],
              "parallel_tool_calls": True, "tool_choice": "auto"}
    openai_request(lambda client: client.responses.create, answer, **{"input": "hi", **members})


def check_strict(tool):
    """The library makes its own schemas strict; one that is leaves nothing to do."""
    if not tool.get("strict"):
        return
    schema = copy.deepcopy(tool["parameters"])
    made = _ensure_strict_json_schema(schema, path=(), root=schema)
    if made != tool["parameters"]:
        raise Fault(f"not strict: the library writes {brief(made)}")


@kind("openai chat_tools")
def openai_chat_tools(tools):
    load(openai.types.chat.ChatCompletionToolParam, tools)
    each(tools, lambda tool: check_json_schema(tool["function"].get("parameters", {})))
    each(tools, lambda tool: check_strict(tool["function"]))
    openai_chat(tools=tools)


@kind("openai chat_messages")
def openai_chat_messages(messages):
    load(openai.types.chat.ChatCompletionMessageParam, messages)
    openai_chat(messages=messages)


@kind("openai responses_tools")
def openai_responses_tools(tools):
    load(openai.types.responses.ToolParam, tools)
    inside = [function for tool in tools for function in tool.get("tools", [tool])]
    each(inside, lambda tool: check_json_schema(tool.get("parameters") or {}))
    each(inside, lambda tool: check_json_schema(tool.get("output_schema") or {}))
    each(inside, check_strict)
    openai_responses(tools=tools)


@kind("openai responses_items")
def openai_responses_items(items):
    load(openai.types.responses.ResponseInputItemParam, items)
    openai_responses(input=items)


# Gemini


def gemini_request(vertex, contents, tools):
    answer = {"candidates": []}

    def send(http):
        options = gemini.HttpOptions(httpx_client=http, base_url="http://localhost")
        client = genai.Client(api_key="none", vertexai=vertex, http_options=options)
        config = gemini.GenerateContentConfig(
            tools=tools, automatic_function_calling=gemini.AutomaticFunctionCallingConfig(disable=True)
        )
        client.models.generate_content(model="gemini", contents=contents, config=config)

    return sent(send, answer)


def gemini_tools(vertex, tools):
    declarations = [declaration for tool in tools for declaration in tool.get("functionDeclarations", [])]
    each(declarations, gemini.FunctionDeclaration.model_validate)
    each(declarations, lambda declaration: check_json_schema(declaration.get("parametersJsonSchema", {})))
    loaded = [gemini.Tool.model_validate(tool) for tool in tools]
    # The client spells members in its own way, which it reads as well.
    body = gemini_request(vertex, "hi", loaded)
    if [gemini.Tool.model_validate(tool) for tool in body["tools"]] != loaded:
        raise Fault(f"the client sends other tools: {brief(body['tools'])} for {brief(tools)}")


@kind("google-genai tools")
def gemini_api_tools(tools):
    gemini_tools(False, tools)


@kind("google-genai vertex_tools")
def vertex_tools(tools):
    gemini_tools(True, tools)


@kind("google-genai contents")
def gemini_contents(contents):
    loaded = [gemini.Content.model_validate(content) for content in contents]
    same("contents", gemini_request(False, loaded, None)["contents"], contents)


# Bedrock


@functools.cache
def converse():
    service = botocore.loaders.Loader().load_service_model("bedrock-runtime", "service-2")
    return botocore.model.ServiceModel(service, "bedrock-runtime").operation_model("Converse").input_shape


def check_shape(shape, value, at):
    """The patterns and lengths of the service's model, which botocore knows and leaves to the service."""
    if shape.type_name == "structure" and isinstance(value, dict) and not getattr(shape, "is_document_type", False):
        for member, inner in value.items():
            check_shape(shape.members[member], inner, f"{at}.{member}")
    elif shape.type_name == "list":
        for index, inner in enumerate(value):
            check_shape(shape.member, inner, f"{at}[{index}]")
    limits = shape.metadata
    if shape.type_name in ("string", "list"):
        if len(value) > limits.get("max", len(value)) or len(value) < limits.get("min", 0):
            raise Fault(f"{at}: {brief(value)} is not {limits.get('min')} to {limits.get('max')} long")
    if shape.type_name == "string" and "pattern" in limits and not re.fullmatch(limits["pattern"], value):
        raise Fault(f"{at}: {brief(value)} is not {limits['pattern']}")
    if shape.type_name == "string" and shape.enum and value not in shape.enum:
        raise Fault(f"{at}: {brief(value)} is none of {shape.enum}")


def bedrock_request(**members):
    request = {"modelId": "m", **members}
    report = botocore.validate.ParamValidator().validate(request, converse())
    if report.has_errors():
        raise Fault(report.generate_report()[:600])
    check_shape(converse(), request, "request")


@kind("botocore tools")
def bedrock_tools(tools):
    bedrock_request(toolConfig={"tools": tools})
    specs = [tool["toolSpec"] for tool in tools if "toolSpec" in tool]
    each(specs, lambda spec: check_json_schema(spec["inputSchema"]["json"]))


@kind("botocore messages")
def bedrock_messages(messages):
    bedrock_request(messages=messages)


# MCP

MCP_VERSIONS = mcp_types.version.KNOWN_PROTOCOL_VERSIONS


@kind("mcp tools")
def mcp_tools(tools):
    each(tools, mcp_types.Tool.model_validate)
    each(tools, lambda tool: check_json_schema(tool["inputSchema"]))
    each(tools, lambda tool: check_json_schema(tool.get("outputSchema", {})))
    mcp_types.ListToolsResult.model_validate({"tools": tools})
    for version in MCP_VERSIONS:
        result = {"tools": tools}
        if mcp_types.version.is_version_at_least(version, mcp_types.version.LATEST_MODERN_VERSION):
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        mcp_types.methods.validate_server_result("tools/list", version, result)


@kind("mcp message")
def mcp_message(message):
    response = TypeAdapter(mcp_types.JSONRPCMessage).validate_python(message)
    if not isinstance(response, mcp_types.JSONRPCResponse):
        raise Fault(f"{brief(message)} is no response")
    mcp_types.CallToolResult.model_validate(response.result)
    for version in mcp_types.version.HANDSHAKE_PROTOCOL_VERSIONS:
        mcp_types.methods.validate_server_result("tools/call", version, response.result)


def main():
    checked, faults = {}, []
    # google-genai warns of values that it does not know, and takes them.
    warnings.filterwarnings("error", message=".* is not a valid ", category=UserWarning)
    for entry in json.load(sys.stdin.buffer):
        name = f"{entry['library']} {entry['kind']}"
        checked[name] = checked.get(name, 0) + 1
        try:
            KINDS[name](entry["value"])
        except Exception as error:  # as above
            faults.append({"kind": name, "label": entry["label"], "fault": f"{type(error).__name__}: {told(error)}"[:3000]})
    json.dump({"checked": checked, "faults": faults}, sys.stdout)


if __name__ == "__main__":
    main()
