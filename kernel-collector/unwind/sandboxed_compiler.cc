#include "kernel-collector/unwind/sandboxed_compiler.h"

#include <fcntl.h>

#include <cerrno>

#include "base/memory_file.h"
#include "base/socket_message.h"
#include "base/status.h"
#include "bpf/include/unwind.h"
#include "kernel-collector/processes/code_file_reader.h"
#include "kernel-collector/unwind/parser_process.h"
#include "kernel-collector/unwind/parser_protocol.h"

namespace tributary {
namespace {

constexpr size_t kNumbersMax = 4096;

// A parser that was taken over by an attacker must not make the walk read outside its tables.
bool AreRows(const std::vector<UnwindRow>& rows, const AddressRange& range) {
  if (rows.empty()) return true;
  if (rows.front().offset != 0 || rows.back().offset >= range.end - range.begin) return false;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i].offset <= rows[i - 1].offset) return false;
    if ((rows[i].rule & 0xf) >= TRIB_RULE_KIND_COUNT) return false;
  }
  return true;
}

bool AreRanges(const std::vector<AddressRange>& ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].begin >= ranges[i].end || (i > 0 && ranges[i].begin < ranges[i - 1].begin)) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<ChildProcess> SandboxedCompiler::SpawnSelf() { return ChildProcess::SpawnSelf(kParserArgument); }

SandboxedCompiler::SandboxedCompiler(std::string proc_root, Spawn spawn, Metrics& metrics, int timeout_ms)
    : proc_root_(std::move(proc_root)),
      spawn_(std::move(spawn)),
      timeout_ms_(timeout_ms),
      deaths_(metrics.AddCounter("tributary_collector_unwind_parser_deaths_total",
                                 "Processes for parsing unwind information that failed while they parsed or were idle, "
                                 "or were killed because they gave no answer in time or a malformed answer")) {}

void SandboxedCompiler::Tidy() {
  if (child_.Reap() == false) deaths_.Add();
}

uint64_t SandboxedCompiler::NumberOf(const ExecutableId& id) {
  if (numbers_.size() >= kNumbersMax && !numbers_.contains(id)) numbers_.clear();  // starts over with new numbers
  auto [it, added] = numbers_.try_emplace(id, next_number_);
  if (added) ++next_number_;
  return it->second;
}

absl::StatusOr<Fd> SandboxedCompiler::OpenFile(const Request& request) {
  if (!request.memory.empty()) {
    ASSIGN_OR_RETURN(MemoryFile memory, MemoryFile::Create("executable"));
    RETURN_IF_ERROR(memory.Append(request.memory));
    return std::move(memory).TakeDescriptor();
  }
  ASSIGN_OR_RETURN(OpenedFile opened, OpenCodeFile(proc_root_, request.key, request.locations));
  if (opened.id != request.id) return Error(absl::StatusCode::kNotFound, "open: the file has been replaced");
  Fd fd(fcntl(opened.file->descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus("dup", "executable", errno);
  return fd;
}

UnwindCompiler::Result SandboxedCompiler::Compile(const Request& request) {
  Result result;
  auto fail = [&](absl::Status status) {
    result = Result{};
    result.status = std::move(status);
    return result;
  };
  bool fresh = !child_.running();
  Exchange exchange = fresh ? Exchange::kNeedsFile : Ask(request, -1, &result);
  // A parser from an earlier request may have ended because it was idle; that is not a death. It may also have died
  // because of another file or a signal. So the request gets a second attempt.
  if (exchange == Exchange::kBroken) {
    if (child_.Stop()) deaths_.Add();
    fresh = true;
    exchange = Exchange::kNeedsFile;
  }
  if (exchange == Exchange::kNeedsFile) {
    auto file = OpenFile(request);
    if (!file.ok()) return fail(file.status());
    if (fresh) {
      auto child = spawn_();
      if (!child.ok()) return fail(child.status());
      child_ = *std::move(child);
    }
    exchange = Ask(request, file->get(), &result);
  }
  if (exchange == Exchange::kAnswered) return result;
  child_.Stop();
  deaths_.Add();
  return fail(Error(absl::StatusCode::kInternal,
                    "the parser process died while it read this file, took too long, or sent an invalid answer"));
}

SandboxedCompiler::Exchange SandboxedCompiler::Ask(const Request& request, int file, Result* result) {
  ParserRequest message{.file = NumberOf(request.id), .begin = request.range.begin, .end = request.range.end};
  message.has_descriptor = file >= 0;
  uint32_t code = ParserAnswer::kFailed;
  if (!SendWithFile(child_.socket(), &message, sizeof(message), file, timeout_ms_) ||
      !Receive(request, &code, result)) {
    return Exchange::kBroken;
  }
  return code == ParserAnswer::kNeedsFile ? Exchange::kNeedsFile : Exchange::kAnswered;
}

bool SandboxedCompiler::Receive(const Request& request, uint32_t* code, Result* result) {
  const int socket = child_.socket();
  ParserAnswer answer;
  if (!ReadAll(socket, &answer, sizeof(answer), timeout_ms_)) return false;
  if (answer.row_count > kParserRowsMax || answer.start_count > kParserStartsMax ||
      answer.message_bytes > kParserMessageMax ||
      answer.kind > static_cast<uint32_t>(UnwindSource::Kind::kDebugFrame)) {
    return false;
  }
  std::string message(answer.message_bytes, '\0');
  result->rows.resize(answer.row_count);
  result->starts.resize(answer.start_count);
  if (!ReadAll(socket, result->rows.data(), answer.row_count * sizeof(UnwindRow), timeout_ms_) ||
      !ReadAll(socket, result->starts.data(), answer.start_count * sizeof(AddressRange), timeout_ms_) ||
      !ReadAll(socket, message.data(), message.size(), timeout_ms_) || !AreRows(result->rows, request.range) ||
      !AreRanges(result->starts)) {
    return false;
  }
  *code = answer.code;
  result->kind = static_cast<UnwindSource::Kind>(answer.kind);
  result->unsupported_rows = answer.unsupported_rows;
  result->cpu_ns = answer.cpu_ns;
  result->status =
      answer.code == ParserAnswer::kFailed ? Error(absl::StatusCode::kInvalidArgument, message) : absl::OkStatus();
  return true;
}

}  // namespace tributary
