#include "reducer/query/process_resources.h"

#include <fmt/format.h>

#include <string>

#include "base/status.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

// What a text takes in the reader's cache and in the tables of a query, without its bytes.
constexpr size_t kTextOverheadBytes = 96;
constexpr Pid kKthreadd{2};

}  // namespace

absl::StatusOr<ProcessResources> ProcessResources::Make(store::StoreReader& reader, const QueryContext& context) {
  ProcessResources resources(reader, context);
  ASSIGN_OR_RETURN(resources.machines_, reader.ListMachines());
  return resources;
}

absl::StatusOr<std::string_view> ProcessResources::TextOf(store::StringId id) {
  ASSIGN_OR_RETURN(const std::string_view text, reader_->Text(id));
  if (id.value == 0 || !read_.insert(id).second) return text;
  bytes_ += text.size() + kTextOverheadBytes;
  if (bytes_ <= context_->limits.selection_bytes_max) return text;
  return Error(absl::StatusCode::kResourceExhausted,
               fmt::format("the processes in this time range have more than {} MiB of different names: ask for a "
                           "shorter time range, or for one node with node_id=\"…\"",
                           context_->limits.selection_bytes_max >> 20));
}

// If the path has no name, the command takes its place in the resource.
absl::StatusOr<ProcessResources::Place> ProcessResources::PlaceOf(const store::ProcessIds& process) {
  ASSIGN_OR_RETURN(const std::string_view path, TextOf(process.executable_path));
  const bool has_name = !BaseName(path).empty();
  return Place{process.machine,
               process.container_id,
               process.cgroup_path,
               process.attributes,
               process.executable_path,
               has_name ? store::StringId{} : process.comm,
               !has_name && process.parent == kKthreadd};
}

absl::StatusOr<std::shared_ptr<const ResourceStates>> ProcessResources::Of(const store::ProcessIds& process) {
  ASSIGN_OR_RETURN(const Place place, PlaceOf(process));
  if (const auto known = by_place_.find(place); known != by_place_.end()) return known->second;
  store::ProcessRow row;
  if (const auto machine = machines_.find(process.machine); machine != machines_.end()) {
    row.node_id = machine->second.node_id;
    row.host_name = machine->second.host_name;
  }
  row.parent = process.parent;
  ASSIGN_OR_RETURN(row.comm, TextOf(process.comm));
  ASSIGN_OR_RETURN(row.executable_path, TextOf(process.executable_path));
  ASSIGN_OR_RETURN(row.container_id, TextOf(process.container_id));
  ASSIGN_OR_RETURN(row.cgroup_path, TextOf(process.cgroup_path));
  ASSIGN_OR_RETURN(row.attributes, TextOf(process.attributes));
  std::shared_ptr<const ResourceStates> states = context_->resources->Of(row);
  if (by_place_.size() >= kPlacesMax) by_place_.clear();
  by_place_.emplace(place, states);
  return states;
}

}  // namespace tributary
