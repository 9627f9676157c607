#pragma once

#include <string>

namespace tributary {

// While a LibbpfLog exists, it collects libbpf's messages on this thread for use in an error message. The collector's
// debug log always gets libbpf's messages. libbpf has one print function per process, so this function finds the
// LibbpfLog of its thread in a thread-local variable. A thread may have only one LibbpfLog at a time.
class LibbpfLog {
 public:
  LibbpfLog();
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;

  // The last 64 KiB of the messages.
  const std::string& text() const { return text_; }
  void Append(const std::string& message);

 private:
  std::string text_;
};

}  // namespace tributary
