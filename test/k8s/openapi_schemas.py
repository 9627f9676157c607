"""Makes the JSON schemas that kubeconform reads from the OpenAPI document (version 2) of an API server.

A schema refuses unknown fields. kubeconform's option for them (-strict) adds nothing to such a schema.
"""

import json

INT_OR_STRING = {"oneOf": [{"type": "string"}, {"type": "integer"}]}


def _strict(value):
    """Returns a part of the document as a JSON schema."""
    if isinstance(value, list):
        return [_strict(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("format") == "int-or-string" or value.get("x-kubernetes-int-or-string"):
        return INT_OR_STRING
    if "$ref" in value:
        return {"$ref": value["$ref"]}
    result = {name: _strict(below) for name, below in value.items() if not name.startswith("x-kubernetes-") and name not in ("format", "default")}
    if "properties" in result and "additionalProperties" not in result and not value.get("x-kubernetes-preserve-unknown-fields"):
        result["additionalProperties"] = False
    return result


def _used(definitions, name, found):
    """Adds to `found` the names of all definitions that a definition uses."""
    if name in found:
        return
    found.add(name)
    for other in json.dumps(definitions[name]).split('"#/definitions/')[1:]:
        _used(definitions, other.split('"')[0], found)


def write_schemas(document, folder):
    """Writes KIND-GROUP-VERSION.json for each kind that the server has. Returns their number."""
    definitions = {name: _strict(value) for name, value in document["definitions"].items()}
    count = 0
    for name, value in document["definitions"].items():
        for kind in value.get("x-kubernetes-group-version-kind", [])[:1]:
            found = set()
            _used(definitions, name, found)
            group = kind["group"].split(".")[0]
            file = "-".join(filter(None, [kind["kind"].lower(), group, kind["version"]]))
            schema = {"$ref": f"#/definitions/{name}", "definitions": {each: definitions[each] for each in found}}
            (folder / f"{file}.json").write_text(json.dumps(schema))
            count += 1
    return count
