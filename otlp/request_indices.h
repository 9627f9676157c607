#pragma once

#include <cstdint>

#include "base/strong.h"

namespace tributary::otlp {

// Indices into the tables of one request of profiles. Index 0 means "not set", except for the types with the comment
// "from 0".
using MappingIndex = Strong<struct OtlpMappingTag, int32_t>;
using FunctionIndex = Strong<struct OtlpFunctionTag, int32_t>;
using LocationIndex = Strong<struct OtlpLocationTag, int32_t>;
using StackIndex = Strong<struct OtlpStackTag, int32_t>;
using LinkIndex = Strong<struct OtlpLinkTag, int32_t>;
using TypeIndex = Strong<struct OtlpTypeTag, int32_t>;              // of samples, from 0
using ResourceIndex = Strong<struct OtlpResourceTag, int32_t>;      // from 0
using AttributesIndex = Strong<struct OtlpAttributesTag, int32_t>;  // a sample's set of attributes; 0: none

}  // namespace tributary::otlp
