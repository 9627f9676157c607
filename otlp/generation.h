#pragma once

#include <optional>
#include <string_view>

namespace tributary::otlp {

// A layout of OTLP profiles on the wire. The protocol is not stable yet: receivers of one layout read requests of
// another one as empty or, without an error, with wrong numbers.
enum class Generation {
  k1_7,     // the Collector v0.128: the stacks are in the profiles
  k1_8,     // v0.136
  k1_9,     // v0.140
  kNewest,  // v0.148 and later: 1.10 and 1.11, which have the same layout. All code except transcoder.h uses it
};

// Parses the version of the protocol: 1.7, 1.8, 1.9, 1.10 or 1.11. Returns nullopt for another text.
std::optional<Generation> ParseGeneration(std::string_view version);

}  // namespace tributary::otlp
