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

// Decodes one segment, batch by batch. All batches have the same Dictionary object, which grows with each batch. The
// file may be damaged or hostile. Even then, this class uses no more memory than the file, one frame and one full
// dictionary need.
class SegmentReader {
 public:
  // `file`: the content of the whole file. InvalidArgument if its header is damaged, or is the header of another
  // segment.
  static absl::StatusOr<std::unique_ptr<SegmentReader>> Open(std::string file, SegmentId segment);

  // Returns the next batch. The batches have the sequence numbers 1, 2, …. Returns nullopt at the end of the file, or
  // if the next record is incomplete or has a damaged prefix. Returns an error, such as InvalidArgument, if the frames
  // of the next record are damaged, or if a record is missing before it.
  absl::StatusOr<std::optional<Batch>> Next();

  const SegmentHeader& header() const { return header_; }
  const SpoolTotals& read() const { return read_; }
  uint64_t read_bytes() const { return offset_; }  // up to the end of the last batch that Next returned

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
