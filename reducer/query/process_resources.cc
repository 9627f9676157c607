#include "reducer/query/process_resources.h"

#include <fmt/format.h>

#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/query/process_row.h"

namespace tributary {
namespace {

// What a text takes in the reader's cache and in the tables of a query, without its bytes.
constexpr size_t kTextOverheadBytes = 96;
// What a place takes in the hash table when the table has just grown, and in an array of the caller.
constexpr size_t kPlaceBytes = 128 + 2 * ProcessResources::kBytesOfCallerMax;
constexpr Pid kKthreadd{2};

}  // namespace

absl::StatusOr<ProcessResources> ProcessResources::Make(store::StoreReader& reader, const QueryContext& context,
                                                        size_t kept_bytes) {
  ProcessResources resources(reader, context);
  RETURN_IF_ERROR(resources.Keep(kept_bytes));
  ASSIGN_OR_RETURN(resources.machines_, reader.ListMachines());
  return resources;
}

absl::Status ProcessResources::Keep(size_t bytes) {
  bytes_ += bytes;
  if (bytes_ <= context_->limits.selection_bytes_max) return absl::OkStatus();
  return Error(absl::StatusCode::kResourceExhausted,
               fmt::format("the processes in this time range have too many different names, containers and attributes: "
                           "the query would need more than {} MiB: ask for a shorter time range, or for one node with "
                           "node_id=\"…\"",
                           context_->limits.selection_bytes_max >> 20));
}

absl::StatusOr<std::string_view> ProcessResources::TextOf(store::StringId id) {
  ASSIGN_OR_RETURN(const std::string_view text, reader_->Text(id));
  if (id.value != 0 && read_.insert(id).second) RETURN_IF_ERROR(Keep(text.size() + kTextOverheadBytes));
  return text;
}

absl::StatusOr<bool> ProcessResources::HasName(store::StringId executable_path) {
  if (const auto known = has_name_.find(executable_path); known != has_name_.end()) return known->second;
  ASSIGN_OR_RETURN(const std::string_view path, TextOf(executable_path));
  return has_name_[executable_path] = !BaseName(path).empty();
}

absl::StatusOr<ProcessResources::Place> ProcessResources::PlaceOf(const store::ProcessIds& process) {
  ASSIGN_OR_RETURN(const bool has_name, HasName(process.executable_path));
  const auto pair = [](store::StringId a, store::StringId b) { return uint64_t{a.value} << 32 | b.value; };
  // If the path has no name, the command takes its place in the resource.
  const PlaceKey key{static_cast<uint64_t>(process.machine.value), pair(process.container_id, process.cgroup_path),
                     pair(process.attributes, process.executable_path),
                     has_name ? 0 : uint64_t{process.comm.value} << 1 | uint64_t{process.parent == kKthreadd}};
  const auto [place, is_new] = places_.try_emplace(key, static_cast<uint32_t>(places_.size()));
  if (is_new) RETURN_IF_ERROR(Keep(kPlaceBytes));
  return Place{place->second, is_new};
}

absl::StatusOr<ResourceStates> ProcessResources::Join(const store::ProcessIds& process) {
  ASSIGN_OR_RETURN(const store::ProcessRow row,
                   MakeProcessRow(process, machines_, [this](store::StringId id) { return TextOf(id); }));
  return context_->resources->joiner().Join(row, context_->request.range);
}

}  // namespace tributary
