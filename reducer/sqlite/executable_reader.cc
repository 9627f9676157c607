#include "reducer/sqlite/executable_reader.h"

#include <algorithm>
#include <optional>

#include "base/status.h"
#include "reducer/sqlite/row_ids.h"

namespace tributary::store {
namespace {

constexpr size_t kFramesPerCheck = 65'536;

// `row`: its columns must be id, kind, bytes, path.
ExecutableRow ReadExecutable(const Statement& row) {
  const auto kind = static_cast<ExecutableIdKind>(row.Int(1));
  return {ExecutableId::Make(kind, row.Bytes(2)).value_or(ExecutableId()), std::string(row.Bytes(3))};
}

}  // namespace

uint32_t ExecutableNumbers::Find(uint32_t id) {
  std::lock_guard lock(mutex_);
  const auto it = numbers_.find(id);
  return it != numbers_.end() ? it->second : 0;
}

uint32_t ExecutableNumbers::Add(uint32_t id) {
  std::lock_guard lock(mutex_);
  const auto [number, is_new] = numbers_.try_emplace(id, static_cast<uint32_t>(ids_.size()));
  if (is_new) ids_.push_back(id);
  return number->second;
}

uint32_t ExecutableNumbers::IdOf(ExecutableNo no) {
  std::lock_guard lock(mutex_);
  return no.value < ids_.size() ? ids_[no.value] : 0;
}

size_t ExecutableNumbers::size() {
  std::lock_guard lock(mutex_);
  return ids_.size();
}

std::shared_ptr<ExecutableNumbers> SharedExecutableNumbers::Get() {
  std::lock_guard lock(mutex_);
  return current_;
}

void SharedExecutableNumbers::Renew(const std::shared_ptr<ExecutableNumbers>& numbers, size_t rows) {
  if (numbers->size() <= 2 * rows + kUnusedMin) return;
  std::lock_guard lock(mutex_);
  if (current_ == numbers) current_ = std::make_shared<ExecutableNumbers>(numbers->generation() + 1);
}

absl::StatusOr<ExecutableReader> ExecutableReader::Prepare(Database& database, SharedExecutableNumbers& shared) {
  ExecutableReader reader(database, shared);
  ASSIGN_OR_RETURN(reader.find_, database.Prepare("SELECT 1 FROM executable WHERE id = ?"));
  ASSIGN_OR_RETURN(reader.read_, database.Prepare("SELECT e.id, e.kind, e.bytes, path.text FROM executable e LEFT JOIN "
                                                  "string path ON path.id = e.path WHERE e.id = ?"));
  return reader;
}

absl::StatusOr<ExecutableNo> ExecutableReader::NumberOf(uint32_t id) {
  if (id == 0) return ExecutableNo{};
  const auto [known, added] = known_.try_emplace(id);
  if (!added) return known->second;
  known->second = ExecutableNo{numbers_->Find(id)};
  if (known->second.value != 0) return known->second;
  // Numbers are for rows only: frames may refer to any number of removed rows.
  const absl::StatusOr<bool> row = find_.Bind(id).Step();
  if (absl::IsDataLoss(row.status())) return ExecutableNo{};
  RETURN_IF_ERROR(row.status());
  if (*row) {
    find_.Reset();
    known->second = ExecutableNo{numbers_->Add(id)};
  }
  return known->second;
}

absl::Status ExecutableReader::Number(std::span<FrameRow> frames) {
  size_t numbered = 0;
  for (FrameRow& frame : frames) {
    if (++numbered % kFramesPerCheck == 0) RETURN_IF_ERROR(database_->CheckCancelled());
    ASSIGN_OR_RETURN(frame.executable, NumberOf(frame.executable.value));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ExecutableRow>> ExecutableReader::All() {
  std::vector<ExecutableRow> executables(1);
  size_t rows = 0;
  ASSIGN_OR_RETURN(Statement statement, database_->Prepare("SELECT e.id, e.kind, e.bytes, path.text FROM executable e "
                                                           "LEFT JOIN string path ON path.id = e.path ORDER BY e.id"));
  for (;; ++rows) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) break;
    const std::optional<uint32_t> id = ReadRowId(statement.Int(0));
    if (!id) continue;
    const uint32_t number = numbers_->Add(*id);
    if (number >= executables.size()) executables.resize(std::max<size_t>(number + size_t{1}, numbers_->size()));
    executables[number] = ReadExecutable(statement);
  }
  shared_->Renew(numbers_, rows);
  return executables;
}

absl::StatusOr<ExecutableRow> ExecutableReader::Of(ExecutableNo no) {
  const uint32_t id = numbers_->IdOf(no);
  if (id == 0) return ExecutableRow{};
  const absl::StatusOr<bool> row = read_.Bind(id).Step();
  if (absl::IsDataLoss(row.status())) return ExecutableRow{};
  RETURN_IF_ERROR(row.status());
  if (!*row) return ExecutableRow{};
  ExecutableRow executable = ReadExecutable(read_);
  read_.Reset();
  return executable;
}

}  // namespace tributary::store
