// What a program links where libcurl or OpenSSL is not installed, or VKFORMER_WITH_HUB is OFF.
#include "hub_download.h"

namespace vkformer::cli {

Result<HubDownload> download_from_hub(const HubDownloadOptions& options) {
  return Error{ErrorCode::kUnsupported,
               "[" + options.name.text() +
                   "] This build downloads nothing: it was made without libcurl. Install "
                   "libcurl4-openssl-dev and libssl-dev and build vkformer with "
                   "VKFORMER_WITH_HUB=ON, or download with `hf download " +
                   options.name.repository() + "` (pip install huggingface_hub)."};
}

}  // namespace vkformer::cli
