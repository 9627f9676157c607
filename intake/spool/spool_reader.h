#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "intake/codec/batch_decoder.h"
#include "intake/spool/spool.h"
#include "intake/spool/spool_segment.h"
#include "profile/batch.h"
#include "profile/dictionary.h"

namespace tributary::intake {

// Decodes one segment, batch by batch. All batches share one dictionary, which grows. The file is not trusted. For a
// damaged or foreign file, the memory is at most the size of the file, of one frame and of one full dictionary.
class SegmentReader {
 public:
  // `file` is the whole file. InvalidArgument if its header is damaged, or belongs to another segment.
  static absl::StatusOr<std::unique_ptr<SegmentReader>> Open(std::string file, SegmentId segment);

  // Returns the next batch, with sequence 1, 2, …. Returns nullopt at the end, or at a torn tail. InvalidArgument if
  // the file is damaged from here on.
  absl::StatusOr<std::optional<Batch>> Next();

  const SegmentHeader& header() const { return header_; }
  const SpoolTotals& read() const { return read_; }
  uint64_t read_bytes() const { return offset_; }  // up to the end of the batch that Next returned last

 private:
  SegmentReader(std::string file, SegmentHeader header);
  absl::StatusOr<Batch> Decode(const SpoolRecord& record);

  std::string file_;
  SegmentHeader header_;
  size_t offset_ = kSegmentHeaderBytes;
  SpoolTotals read_;
  std::shared_ptr<Dictionary> dictionary_;
  BatchDecoder decoder_;
};

}  // namespace tributary::intake
