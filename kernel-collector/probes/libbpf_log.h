#pragma once

#include <string>

namespace tributary {

// While a LibbpfLog exists, it collects libbpf's messages on this thread for use in an error message. The first
// LibbpfLog installs a print function in libbpf. This function stays installed, and also writes libbpf's messages to
// the debug log. It finds the LibbpfLog of its thread in a thread-local variable, because libbpf has one print function
// per process. A thread may have only one LibbpfLog at a time.
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
