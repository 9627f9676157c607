#include "elf/file_window.h"

#include <algorithm>

#include "base/status.h"

namespace tributary {

void FileWindow::Release() {
  for (Block& block : blocks_) block = Block();
  scratch_ = std::string();
  memory_ = std::string();
  in_memory_ = false;
  bytes_read_ = 0;
  status_ = absl::OkStatus();
}

FileWindow::Block* FileWindow::Load(uint64_t number) {
  Block& block = blocks_[number % blocks_.size()];
  if (block.number == number) return &block;
  uint64_t begin = number * kBlockBytes;
  size_t size = std::min<uint64_t>(kBlockBytes, file_->file_size() - begin);
  bytes_read_ += size;
  if (bytes_read_ > kReadBytesMax) {
    status_ = Error(absl::StatusCode::kInvalidArgument, "unwind sections: reading them takes too many bytes");
    return nullptr;
  }
  if (block.bytes == nullptr) block.bytes.reset(new char[kBlockBytes]);
  block.number = UINT64_MAX;
  status_ = file_->ReadAt(begin, size, block.bytes.get());
  if (!status_.ok()) return nullptr;
  block.number = number;
  block.size = size;
  return &block;
}

const char* FileWindow::SlowView(uint64_t offset, size_t size) {
  uint64_t file_size = in_memory_ ? memory_.size() : file_->file_size();
  if (size > kViewBytesMax || offset > file_size || size > file_size - offset) {
    status_ =
        Error(absl::StatusCode::kInvalidArgument, "unwind sections: a read is too long, or past the end of the file");
    return nullptr;
  }
  if (in_memory_) return memory_.data() + offset;
  uint64_t first = offset / kBlockBytes, last = (offset + std::max<size_t>(size, 1) - 1) / kBlockBytes;
  if (first == last) {
    Block* block = Load(first);
    return block == nullptr ? nullptr : block->bytes.get() + offset % kBlockBytes;
  }
  scratch_.clear();
  for (uint64_t number = first; number <= last; ++number) {
    Block* block = Load(number);
    if (block == nullptr) return nullptr;
    size_t from = number == first ? offset % kBlockBytes : 0;
    scratch_.append(block->bytes.get() + from, std::min(block->size - from, size - scratch_.size()));
  }
  return scratch_.data();
}

}  // namespace tributary
