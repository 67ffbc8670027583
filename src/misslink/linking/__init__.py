"""Why a case failed, and how often it goes with a retrieval miss."""
