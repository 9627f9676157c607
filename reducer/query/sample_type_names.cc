#include "reducer/query/sample_type_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "reducer/query/query_context.h"

namespace tributary {
namespace {

constexpr size_t kListedMax = 20;  // types listed in a message

std::string NameAndUnit(const SampleTypeInfo& type) { return type.name + ":" + type.unit; }

std::string KeyOf(const SampleTypeInfo& type) { return NameAndUnit(type) + (type.is_gauge() ? ":last" : ":sum"); }

// Lists types in their order, each as short as possible: "cpu:nanoseconds, inuse_space:bytes:last,
// inuse_space:bytes:sum".
std::string ListOf(const std::vector<SampleTypeInfo>& types) {
  const auto is_twin = [](const SampleTypeInfo& a, const SampleTypeInfo& b) {
    return NameAndUnit(a) == NameAndUnit(b);
  };
  std::string list;
  for (size_t i = 0; i < std::min(types.size(), kListedMax); ++i) {
    const bool has_twin =
        (i > 0 && is_twin(types[i - 1], types[i])) || (i + 1 < types.size() && is_twin(types[i], types[i + 1]));
    list += list.empty() ? "" : ", ";
    list += EscapeForDisplay(has_twin ? KeyOf(types[i]) : NameAndUnit(types[i]));
  }
  return types.size() > kListedMax ? fmt::format("{} and {} more", list, types.size() - kListedMax) : list;
}

template <typename TextOf>
std::vector<SampleTypeInfo> FindBy(TextOf&& text_of, std::string_view asked, const std::set<SampleTypeInfo>& types) {
  std::vector<SampleTypeInfo> found;
  std::copy_if(types.begin(), types.end(), std::back_inserter(found),
               [&](const SampleTypeInfo& type) { return text_of(type) == asked; });
  return found;
}

}  // namespace

absl::StatusOr<std::set<SampleTypeInfo>> ListSampleTypes(store::Store& store, const QueryRequest& request) {
  std::set<SampleTypeInfo> types;
  const absl::Status visited = ForEachShard(store, request, [&](store::StoreReader& reader) -> absl::Status {
    ASSIGN_OR_RETURN(auto of_shard, reader.SampleTypes());
    for (auto& [no, type] : of_shard) types.insert(std::move(type));
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(visited);
  return types;
}

absl::StatusOr<std::set<SampleTypeInfo>> ListSampleTypesInRange(store::Store& store, const QueryRequest& request) {
  std::set<SampleTypeInfo> found;
  const absl::Status visited = ForEachShard(store, request, [&](store::StoreReader& reader) -> absl::Status {
    ASSIGN_OR_RETURN(auto missing, reader.SampleTypes());
    std::erase_if(missing, [&](const auto& type) { return found.contains(type.second); });
    if (missing.empty()) return absl::OkStatus();
    const absl::Status scanned = reader.ScanSums(request.range, [&](const store::SumColumns& columns) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(request));
      if (const auto type = missing.find(columns.type); type != missing.end() && !columns.nodes.empty()) {
        found.insert(std::move(type->second));
        missing.erase(type);
      }
      return missing.empty() ? absl::CancelledError("all types were found") : absl::OkStatus();
    });
    return missing.empty() ? absl::OkStatus() : scanned;
  });
  RETURN_IF_ERROR(visited);
  return found;
}

absl::StatusOr<SampleTypeInfo> FindSampleType(store::Store& store, const QueryRequest& request) {
  for (const SampleTypeRow& row : kSampleTypes) {
    SampleTypeInfo own = InfoOf(row);
    if (request.type == own.name || request.type == NameAndUnit(own) || request.type == KeyOf(own)) return own;
  }
  ASSIGN_OR_RETURN(const std::set<SampleTypeInfo> types, ListSampleTypes(store, request));
  std::vector<SampleTypeInfo> found = FindBy(KeyOf, request.type, types);
  if (found.empty()) found = FindBy(NameAndUnit, request.type, types);
  if (found.empty()) found = FindBy([](const SampleTypeInfo& type) { return type.name; }, request.type, types);
  if (found.size() == 1) return found[0];
  const std::string asked = EscapeForDisplay(std::string_view(request.type).substr(0, 2 * kSampleTypeBytesMax));
  if (found.empty()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("type: there are no samples of type '{}'; the existing types are: {}", asked,
                             types.empty() ? "none yet" : ListOf({types.begin(), types.end()})));
  }
  return Error(absl::StatusCode::kInvalidArgument,
               fmt::format("type: several types have the name '{}': ask for one of {}", asked, ListOf(found)));
}

}  // namespace tributary
