#include "kernel-collector/unwind/parser_process.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/heap.h"
#include "base/log.h"
#include "base/resident.h"
#include "base/sandbox.h"
#include "base/socket_message.h"
#include "base/status.h"
#include "base/thread_cpu.h"
#include "base/types.h"
#include "elf/unwind_source.h"
#include "kernel-collector/unwind/open_sources.h"
#include "kernel-collector/unwind/parser_protocol.h"

namespace tributary {
namespace {

constexpr uint64_t kMemoryBytesMax = uint64_t{1} << 30;
constexpr int kAnswerTimeoutMs = 10'000;
constexpr int kPauseMs = 500;  // requests of a program that has just started follow each other faster

class Parser {
 public:
  // Returns false if the collector is gone.
  bool Answer(int socket, const ParserRequest& request, Fd file) {
    int64_t begin_ns = ThreadCpuNs();
    ParserAnswer answer;
    std::string message;
    rows_.clear();
    starts_ = nullptr;
    absl::Status status = Compile(request, std::move(file), &answer);
    if (absl::IsNotFound(status)) {
      answer.code = ParserAnswer::kNeedsFile;
    } else if (!status.ok()) {
      message = Message(status).substr(0, kParserMessageMax);
    } else {
      answer.code = ParserAnswer::kOk;
      answer.row_count = static_cast<uint32_t>(std::min<size_t>(rows_.size(), kParserRowsMax));
      answer.start_count = static_cast<uint32_t>(std::min<size_t>(starts_->size(), kParserStartsMax));
    }
    answer.message_bytes = static_cast<uint32_t>(message.size());
    answer.cpu_ns = ThreadCpuNs() - begin_ns;
    return WriteAll(socket, &answer, sizeof(answer), kAnswerTimeoutMs) &&
           WriteAll(socket, rows_.data(), answer.row_count * sizeof(UnwindRow), kAnswerTimeoutMs) &&
           (answer.start_count == 0 ||
            WriteAll(socket, starts_->data(), answer.start_count * sizeof(AddressRange), kAnswerTimeoutMs)) &&
           WriteAll(socket, message.data(), message.size(), kAnswerTimeoutMs);
  }

 private:
  absl::Status Compile(const ParserRequest& request, Fd file, ParserAnswer* answer) {
    UnwindSource* source = nullptr;
    if (file.valid()) {
      ASSIGN_OR_RETURN(std::unique_ptr<ElfFile> elf, ElfFile::Open(std::move(file)));
      ASSIGN_OR_RETURN(std::unique_ptr<UnwindSource> opened, UnwindSource::Open(std::move(elf)));
      source = open_.Add(request.file, std::move(opened));
    } else {
      source = open_.Find(request.file);
      if (source == nullptr) return Error(absl::StatusCode::kNotFound, "the file is not open");
    }
    answer->kind = static_cast<uint32_t>(source->kind());
    starts_ = &source->starts();
    if (source->kind() == UnwindSource::Kind::kNone) return absl::OkStatus();
    uint64_t before = source->counts().unsupported_rows;
    absl::Status status = source->Compile(AddressRange{request.begin, request.end}, &rows_);
    if (!status.ok()) {
      // The file may have changed during the read: open it again next time.
      open_.Forget(request.file);
      return Error(absl::StatusCode::kInvalidArgument, Message(status));
    }
    answer->unsupported_rows = source->counts().unsupported_rows - before;
    return absl::OkStatus();
  }

  OpenSources<uint64_t> open_;
  std::vector<UnwindRow> rows_;
  const std::vector<AddressRange>* starts_ = nullptr;
};

}  // namespace

int RunUnwindParser(int socket, int idle_ms) {
  if (absl::Status status = EnterSandbox({.name = "unwind-parser", .memory_bytes_max = kMemoryBytesMax});
      !status.ok()) {
    LogError("unwind parser: {}", Message(status));
    return 1;
  }
  ReleaseCodePages();  // the loader's pages
  Parser parser;
  ParserRequest request;
  while (true) {
    Fd file;
    const int pause_ms = std::min(kPauseMs, idle_ms);
    if (!WaitForMessage(socket, pause_ms)) {
      // Keeps what it knows about files, because the next request may be for one of them.
      TrimHeap();
      ReleaseCodePages();
    }
    if (!ReceiveWithFile(socket, &request, sizeof(request), &file, idle_ms - pause_ms)) return 0;
    if (!parser.Answer(socket, request, std::move(file))) return 0;
  }
}

}  // namespace tributary
