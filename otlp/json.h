#pragma once

#include <string>

namespace google::protobuf {
class Message;
}

namespace tributary::otlp {

// Writes a message as OTLP/JSON. It differs from protobuf's own JSON: the ids of traces, spans and profiles are in
// hexadecimal and not in base64, and enums are numbers. Keys are in lowerCamelCase, 64-bit integers are strings, and
// fields with their default value are left out.
std::string ToJson(const google::protobuf::Message& message);

}  // namespace tributary::otlp
