#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/otlp/profiles_service.pb.h"
#include "test/otlp/validator.h"

// The validator's parts.

namespace tributary::otlp {

namespace proto = ::opentelemetry::proto::profiles::v1development;
namespace common = ::opentelemetry::proto::common::v1;

// The limit of most gRPC servers.
constexpr size_t kRequestBytesMax = 4u << 20;

enum class Table { kMapping, kLocation, kFunction, kLink, kString, kAttribute, kStack };
constexpr size_t kTableCount = 7;
std::string_view TableName(Table table);  // "mapping_table"

// The findings of one check.
class Findings {
 public:
  void Add(std::string rule, std::string where, std::string detail);
  std::vector<Finding> Take() && { return std::move(findings_); }

 private:
  std::vector<Finding> findings_;
};

// The state of one check of a request of profiles: also which table elements are referenced.
class Validation : public Findings {
 public:
  explicit Validation(const ProfilesRequest& request);

  const ProfilesRequest& request() const { return request_; }
  const proto::ProfilesDictionary& dictionary() const { return request_.dictionary(); }
  int SizeOf(Table table) const;

  // Checks that a reference is in range (rule "<field>.range") and marks the element as used. Returns false if the
  // reference is out of range.
  bool Refer(Table table, int64_t index, std::string_view field, const std::string& where);
  bool IsUsed(Table table, int index) const { return used_[static_cast<size_t>(table)][static_cast<size_t>(index)]; }
  // Returns the string, or "" if `index` is out of range.
  const std::string& String(int64_t index) const;

 private:
  const ProfilesRequest& request_;
  std::vector<bool> used_[kTableCount];
};

// Each function adds its findings. Call CheckTables last: it reports elements without a reference.
void CheckMessage(const google::protobuf::Message& message, const std::string& where, Findings& findings);
void CheckResources(Validation& v);
void CheckTables(Validation& v);

// Checks a value's string indices and the keys inside it.
void CheckValue(const common::AnyValue& value, const std::string& where, Validation& v);
// Checks a list of attributes that are stored by value: each attribute has one key, and no key occurs twice.
void CheckAttributes(const google::protobuf::RepeatedPtrField<common::KeyValue>& attributes, const std::string& rule,
                     const std::string& where, Validation& v);
// Checks a list of references into the attribute table: each is in range and not 0, and no key occurs twice.
void CheckAttributeIndices(const google::protobuf::RepeatedField<int32_t>& indices, const std::string& rule,
                           const std::string& where, Validation& v);

}  // namespace tributary::otlp
