#pragma once

#include <string>

namespace google::protobuf {
class Message;
}

namespace tributary::otlp {

// Writes a message as OTLP/JSON. It differs from protobuf's own JSON: the ids of traces, spans and profiles are in
// hexadecimal and not in base64, and enums are numbers. Keys are in lowerCamelCase, and 64-bit integers are strings.
// Fields with their default value are left out, except in a oneof.
std::string ToJson(const google::protobuf::Message& message);

}  // namespace tributary::otlp
