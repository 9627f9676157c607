"""Reads samples from a request of OTLP profiles in the JSON of any release of the Collector, from 1.7 on.

    points(request)

returns a sorted list with one tuple for each time stamp, or for each sum, with everything that it refers to. So the
lists of two generations are equal if their samples are.
"""

import otelcol


def _frame(tables, index):
    strings = tables["stringTable"]
    location = tables["locationTable"][index]
    mapping = tables["mappingTable"][location.get("mappingIndex", 0)]
    lines = []
    for line in location.get("lines", location.get("line", [])):
        function = tables["functionTable"][line.get("functionIndex", 0)]
        names = (strings[function.get(f"{name}Strindex", 0)] for name in ("name", "systemName", "filename"))
        lines.append((*names, int(line.get("line", 0))))
    return (_attributes(tables, location), int(location.get("address", 0)), tuple(lines),
            strings[mapping.get("filenameStrindex", 0)], _attributes(tables, mapping),
            int(mapping.get("memoryStart", 0)), int(mapping.get("memoryLimit", 0)))


def _attributes(tables, owner):
    """Returns the attributes of a sample, location or mapping."""
    entries = [tables["attributeTable"][index] for index in owner.get("attributeIndices", [])]
    return tuple(sorted(otelcol.attributes(entries, tables["stringTable"]).items()))


def _type(tables, value_type):
    strings = tables["stringTable"]
    return strings[value_type.get("typeStrindex", 0)], strings[value_type.get("unitStrindex", 0)]


def _stack(tables, profile, sample):
    """Returns indices of locations. In 1.7, they are a range of the profile's, and in later generations a stack."""
    if "stackTable" in tables:
        return tables["stackTable"][sample.get("stackIndex", 0)].get("locationIndices", [])
    start = sample.get("locationsStartIndex", 0)
    return profile.get("locationIndices", [])[start:start + sample.get("locationsLength", 0)]


def _values(sample):
    """Yields a time stamp and a value for each point. The time stamp is 0 if the sample is a sum without one.

    In 1.7, a sample has one value. If it is the number of time stamps, each of them counts one, as in later generations
    each time stamp does if the sample has no values.
    """
    times = [int(time) for time in sample.get("timestampsUnixNano", [])]
    values = [int(value) for value in sample.get("values", sample.get("value", []))]
    if len(times) > 1 and len(values) == 1:
        assert values[0] == len(times), sample
    if not times:
        assert len(values) == 1, sample
        yield 0, values[0]
    elif len(times) == len(values):
        yield from zip(times, values)
    else:
        yield from ((time, 1) for time in times)


def _points_of(tables, profile):
    types = profile["sampleType"]
    value_type = _type(tables, types[0] if isinstance(types, list) else types)
    about = (value_type, _type(tables, profile.get("periodType", {})), int(profile.get("period", 0)),
             int(profile.get("timeUnixNano", profile.get("timeNanos", 0))),
             int(profile.get("durationNano", profile.get("durationNanos", 0))), profile["profileId"])
    for sample in profile.get("samples", profile.get("sample", [])):
        link = tables["linkTable"][sample.get("linkIndex", 0)]
        frames = tuple(_frame(tables, index) for index in _stack(tables, profile, sample))
        for time, value in _values(sample):
            yield (about, _attributes(tables, sample), (link.get("traceId", ""), link.get("spanId", "")), frames, time,
                   value)


def points(request):
    tables = request.get("dictionary", {})
    out = []
    for of_resource in request.get("resourceProfiles", []):
        resource = tuple(sorted(otelcol.attributes(of_resource["resource"].get("attributes"),
                                                   tables["stringTable"]).items()))
        for of_scope in of_resource["scopeProfiles"]:
            scope = of_scope["scope"].get("name"), of_scope["scope"].get("version")
            for profile in of_scope["profiles"]:
                out += ((resource, scope, *point) for point in _points_of(tables, profile))
    return sorted(out)
