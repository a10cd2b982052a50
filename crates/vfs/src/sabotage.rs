//! Bugs that can be planted, so that a campaign can be seen to find each of them.
//!
//! [`Bug`] is the closed list. A line of the engine where a bug can be planted is a *hook point*:
//! it asks [`Bug::is_planted`]. Only the cargo feature `sabotage` compiles an answer other than
//! false, so a release build has neither hook points nor names.

/// Writes [`Bug`] with the name, the campaign and the meaning of each.
macro_rules! bugs {
    ($($campaign:ident { $($bug:ident $name:literal $what:literal,)+ })+) => {
        /// A bug that can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[doc = $what] $bug,)+)+
        }

        impl Bug {
            /// Every bug.
            pub const ALL: &[Self] = &[$($(Self::$bug,)+)+];

            /// Its name in `ESKER_SABOTAGE` and on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($(Self::$bug => $name,)+)+ }
            }

            /// What goes wrong.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self { $($(Self::$bug => $what,)+)+ }
            }

            /// The campaign that has to find it.
            #[must_use]
            pub const fn campaign(self) -> Campaign {
                match self { $($(Self::$bug => Campaign::$campaign,)+)+ }
            }
        }
    };
}

/// What has to find a bug; others may find it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Campaign {
    /// `cargo xtask crash --sabotage`.
    Crash,
    /// `cargo xtask crash --invariants`: an assertion has to catch it, not a wrong answer.
    Invariants,
    /// `cargo xtask model`.
    Model,
    /// `cargo xtask kill --planted`.
    Kill,
    /// `cargo xtask differential --planted`.
    Sql,
}

impl Bug {
    /// The bugs that a campaign has to find.
    pub fn of(campaign: Campaign) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |bug| bug.campaign() == campaign)
    }

    /// True when `ESKER_SABOTAGE` names this bug, alone or in a list with commas between. The
    /// variable is read once.
    ///
    /// # Panics
    /// When the variable has a name that no bug has: a campaign must not test nothing.
    #[cfg(feature = "sabotage")]
    #[must_use]
    pub fn is_planted(self) -> bool {
        static PLANTED: std::sync::OnceLock<Vec<Bug>> = std::sync::OnceLock::new();
        let planted = PLANTED.get_or_init(|| {
            let names = std::env::var("ESKER_SABOTAGE").unwrap_or_default();
            let named = |name: &str| Self::ALL.iter().copied().find(|bug| bug.name() == name);
            let names = names.split(',').filter(|name| !name.is_empty());
            names.map(|name| named(name).unwrap_or_else(|| panic!("no bug {name:?}"))).collect()
        });
        planted.contains(&self)
    }

    /// False: this build has no hook points.
    #[cfg(not(feature = "sabotage"))]
    #[must_use]
    #[inline(always)]
    pub const fn is_planted(self) -> bool {
        false
    }
}

bugs! {
    Crash {
        SkipLogFsync "skip_log_fsync" "the log is not synced",
        SkipLogDirFsync "skip_log_dir_fsync" "the directory is not synced after a new log file",
        AckBeforeSync "ack_before_sync" "a commit is acknowledged before the sync",
        TornTailAccepted "torn_tail_accepted" "a frame with a wrong checksum is replayed",
        MidlogRotAsTornTail "midlog_rot_as_torn_tail"
            "a hole below proven commits is taken for a torn tail",
        VoidFrameResurrected "void_frame_resurrected" "frames of an ended epoch come back",
        StaleEpochAccepted "stale_epoch_accepted" "an epoch that was never finished counts",
        ReserveUsedByInserts "reserve_used_by_inserts"
            "commits that only add data use the log's reserve",
        ReserveNotRefilled "reserve_not_refilled" "the log's reserve is not filled again",
        AppendAfterShortWrite "append_after_short_write"
            "a batch is repeated behind its torn first attempt",
        ChecksumNotBoundToPosition "checksum_not_bound_to_position"
            "a block of a segment is valid anywhere",
        RecoveryTrustsPageCache "recovery_trusts_page_cache"
            "recovery does not rewrite what may be in memory only",
        RecoveryTrustsAnyClaim "recovery_trusts_any_claim"
            "recovery believes what no durable frame proves",
        DurableThroughTooHigh "durable_through_too_high"
            "frames claim commits durable that are not yet",
        PoisonIgnored "poison_ignored" "a failed sync is taken for a success",
        SkipSegmentFsync "skip_segment_fsync" "a segment is named before it is synced",
        SkipSegmentDirFsync "skip_segment_dir_fsync"
            "a segment is named before its name is durable",
        SkipCheckpointFsync "skip_checkpoint_fsync" "a checkpoint is named before it is synced",
        SkipCheckpointDirFsync "skip_checkpoint_dir_fsync"
            "a checkpoint is named before its name is durable",
        CheckpointAheadOfLog "checkpoint_ahead_of_log"
            "a checkpoint claims commits that it does not hold",
        UnnamedCheckpointTrusted "unnamed_checkpoint_trusted"
            "a checkpoint is relied on that no frame names",
        LogRemovedBeforeCheckpoint "log_removed_before_checkpoint"
            "old log files go before the checkpoint is named",
        PublishBeforeDurable "publish_before_durable"
            "a merge is swapped in, and its inputs go, before its frame",
        LostTombstone "lost_tombstone" "replay forgets deletes of sealed rows",
        SealForgetsLateDeletes "seal_forgets_late_deletes"
            "a sealed segment lacks deletes that a checkpoint took in",
        SealedRowsReplayed "sealed_rows_replayed"
            "replay brings sealed rows back beside their segment",
        MergeForgetsDeletes "merge_forgets_deletes" "a merge forgets deletes that came meanwhile",
        MergeDropsSnapshotRows "merge_drops_snapshot_rows"
            "a merge drops what a snapshot still sees",
        VersionsOfNewerSnapshotsDropped "versions_of_newer_snapshots_dropped"
            "a merge asks only what the oldest snapshot sees",
        DroppedVersionCutsChain "dropped_version_cuts_chain"
            "a version that is dropped does not lead to the one before",
        NewestDeadVersionDropped "newest_dead_version_dropped"
            "a merge drops what tells that a key was changed",
        NewestDroppedCutsChain "newest_dropped_cuts_chain"
            "a merge drops a newest version and forgets what it leads to",
        IndexEntryNotRepointed "index_entry_not_repointed" "a merge leaves index entries behind",
        ForwardingDroppedTooEarly "forwarding_dropped_too_early"
            "old locations stop resolving while they are in use",
        ReplacedNotRelinked "replaced_not_relinked"
            "newer versions go on naming rows that a merge took elsewhere",
        PlacesNotLedOn "places_not_led_on"
            "who remembers where rows are is not told where a merge took them",
        VisibleBeforeLoadCommits "visible_before_load_commits"
            "rows of a load are seen before it commits",
        LoadWithoutConflictCheck "load_without_conflict_check"
            "a load does not look for keys that are taken",
        AbortedLoadStaysIndexed "aborted_load_stays_indexed"
            "the index keeps the keys of a load that was given up",
        DropBeforeDurable "drop_before_durable"
            "the files of a dropped table go before the drop is durable",
        RefusalBeforeDurable "refusal_before_durable"
            "a refusal tells of commits that may yet be lost",
        RowIdsReused "row_ids_reused" "a checkpoint forgets how many row ids have been given out",
        ReadsSeeUnacknowledged "reads_see_unacknowledged" "reads see commits that are not durable",
        RowsReplayedByNewestSchema "rows_replayed_by_newest_schema"
            "replay reads rows by a schema that is younger than they",
        AlterKeepsGroupOpen "alter_keeps_group_open" "rows of two schemas go to one group",
        OldSchemaAccepted "old_schema_accepted"
            "rows that were prepared for an older schema are written",
        SnapshotSeesNewSchema "snapshot_sees_new_schema" "a snapshot has the fields of now",
        MergeForgetsDroppedFields "merge_forgets_dropped_fields"
            "a merge leaves out fields that a snapshot still has",
        SchemasForgottenTooEarly "schemas_forgotten_too_early"
            "a merge forgets the schemas of older snapshots",
        TruncationNotReplayed "truncation_not_replayed" "replay does not empty a truncated table",
        ViewBoundToDroppedColumn "view_bound_to_dropped_column"
            "a column goes though a view reads it",
        RowIdBeforeCommit "row_id_before_commit"
            "events have row ids from before their commit",
        ProducerRowInOtherCommit "producer_row_in_other_commit"
            "what is kept of a producer is another commit than its events",
        DedupeForgottenAtOpen "dedupe_forgotten_at_open"
            "Which events of a stream are there is not looked for in what is stored",
        DedupeForgetsInserted "dedupe_forgets_inserted"
            "Events that statements insert are not known to those that are appended",
        RowIdsGivenAgainAfterCrash "row_ids_given_again_after_crash"
            "row ids of events that a crash took are given out again",
        RetentionEndsNewerRows "retention_ends_newer_rows"
            "a segment ends though some of its events are to be kept",
        StragglerLeftBehind "straggler_left_behind"
            "old events stay that share a segment with newer ones",
        EndedSegmentSeenByNewerReader "ended_segment_seen_by_newer_reader"
            "a scan finds rows of a segment that has ended",
        EndedSegmentHiddenFromOlderSnapshot "ended_segment_hidden_from_older_snapshot"
            "a snapshot loses the events of a segment that ended after it",
        EndedSegmentsNotReplayed "ended_segments_not_replayed"
            "events that have ended are back after a crash",
        HistoryInOtherFrame "history_in_other_frame"
            "the groups of events that end are stored before these end",
        HistoryHasDeadRows "history_has_dead_rows"
            "the history of a rollup has events that were deleted before they ended",
        TailBlockPastPrefix "tail_block_past_prefix"
            "a block of an open group has rows that are newer than its reader",
        ErasureForgottenAtOpen "erasure_forgotten_at_open"
            "an erasure that a crash broke off does not go on",
        ErasedRowLeftInLog "erased_row_left_in_log"
            "an erasure is done though the log has its rows",
        ErasedRowLeftInReserve "erased_row_left_in_reserve"
            "an erasure is done though a former log file has its rows",
        ErasedRowLeftForReader "erased_row_left_for_reader"
            "an erasure is done though a reader holds a file with its rows",
        PackedDeltaWraps "packed_delta_wraps"
            "times that are packed as deltas wrap within a block",
        RowIdBaseNotInFrame "row_id_base_not_in_frame"
            "the frame of a load does not say from which row id on its events are numbered",
        OneBadItemFailsBatch "one_bad_item_fails_batch"
            "an event that is refused takes the others of its request with it",
        OutcomesOfOtherRequests "outcomes_of_other_requests"
            "of requests that share a commit each gets the row ids of another one",
        AsyncWindowIgnored "async_window_ignored"
            "what did not wait for the disk is not on it when it has to be",
        OldEventTaken "old_event_taken" "an event is taken that would have ended already",
        AlteredClassesIgnored "altered_classes_ignored"
            "segments stay of the class that they had before the classes changed",
        SealIgnoresWindows "seal_ignores_windows"
            "late events are sealed in one segment with those of the newest window",
        PageCursorSkipsEqualTimes "page_cursor_skips_equal_times"
            "a page leaves out events of the time at which the one before it ended",
        EventFoundAtOtherTime "event_found_at_other_time"
            "an event is found by an id with its row id and another time",
        TailPassesOverGap "tail_passes_over_gap"
            "a tail does not tell that events have ended before it came to them",
        TailSkipsBeyondLimit "tail_skips_beyond_limit"
            "a tail passes over events that its last batch had no room for",
        FeedEventInOtherCommit "feed_event_in_other_commit"
            "the changes of a commit go to the feed in a commit of their own",
        FeedMissesExpiry "feed_misses_expiry" "a feed does not tell that rows have expired",
        FeedCursorSkipsAfterTruncate "feed_cursor_skips_after_truncate"
            "who goes on from a cursor is not told that the table was cleared",
        ProducerEpochNotFenced "producer_epoch_not_fenced"
            "a producer that was replaced goes on",
        ProducerGapAccepted "producer_gap_accepted"
            "events of a producer are stored though others before them never came",
        LookupBeforeCommit "lookup_before_commit"
            "an event has what was looked up when it came, not as of its commit",
        PackedBlockOfOtherSegment "packed_block_of_other_segment"
            "a compressed block that was kept is taken for that of another segment",
        GeneratedValueNotRecomputedOnUpdate "generated_value_not_recomputed_on_update"
            "an update leaves what is computed of a row as it was",
        PartialIndexUsedOutsidePredicate "partial_index_used_outside_predicate"
            "a query is answered by an index that has not all rows that it asks for",
        ViewLostInCheckpoint "view_lost_in_checkpoint" "a checkpoint forgets views",
        SchemaLostInCheckpoint "schema_lost_in_checkpoint" "a checkpoint forgets schemas",
        TempTableInTheLog "temp_table_in_the_log" "a temporary table is one of the database",
        ReferenceCheckedAsOfSnapshot "reference_checked_as_of_snapshot"
            "a commit does not look again for the rows that its own name, or that name what goes",
        CascadeInTwoCommits "cascade_in_two_commits"
            "rows that name what is gone go in a commit of their own",
        KeyUpdateKeepsOldRow "key_update_keeps_old_row"
            "a row that gets another key stays under its old one, too",
        TruncateBeforeDurable "truncate_before_durable"
            "the files of a truncated table go before that is durable",
        DefaultsLostInCheckpoint "defaults_lost_in_checkpoint"
            "a checkpoint forgets the defaults of fields",
        IndexesLostInCheckpoint "indexes_lost_in_checkpoint" "a checkpoint forgets indexes",
        IndexChangeNotReplayed "index_change_not_replayed"
            "replay ignores that an index was created or dropped",
        CheckAddedUntested "check_added_untested" "a new check is not tested on the rows there are",
        BackupBeforeDurable "backup_before_durable" "a backup holds commits that are not durable",
        BackupTakesUnfinishedLoads "backup_takes_unfinished_loads"
            "a backup has rows of a load that has not committed",
        UpsertWithoutChecks "upsert_without_checks"
            "a row that replaces another is not tested by the checks",
        RemovedBeforeDurable "removed_before_durable"
            "files go when an Async drop or truncation returns",
        BackupCopyNotSynced "backup_copy_not_synced"
            "a backup is done before its files are durable",
        ValueFileUnsynced "value_file_unsynced" "a frame names a value before the value is synced",
        ValueFileNameUnsynced "value_file_name_unsynced"
            "a frame names a value before its file's name is durable",
        ValueFileRemovedTooEarly "value_file_removed_too_early"
            "a value file goes while something refers to it",
        SequenceNotLogged "sequence_not_logged"
            "values of a sequence are given out that no frame speaks of",
        RunNamedBeforeSynced "run_named_before_synced"
            "a run of an index gets its name before it is durable",
        RunIgnoresDescending "run_ignores_descending" "a run sorts descending fields the wrong way",
        RunNotSorted "run_not_sorted" "a run is in the order of its rows",
        RunCountsDeadRows "run_counts_dead_rows" "a count by a run takes rows that are gone",
        RunTrustsCutValues "run_trusts_cut_values"
            "a run takes the starts of long texts for the whole",
        RunForgetsNulls "run_forgets_nulls" "a run takes NULLs for values",
        KeyLookupStopsEarly "key_lookup_stops_early"
            "of several keys that are looked up the first is found",
        KeyOrderIgnoresOverlap "key_order_ignores_overlap"
            "zones are read for an order as if none overlapped",
        TrigramMissesRowsAfterMerge "trigram_misses_rows_after_merge"
            "a merged segment has the grams of an older one",
        RollupNotRebuiltAfterMerge "rollup_not_rebuilt_after_merge"
            "what is kept of a rollup for a merged segment is that of another one",
        DeadRowsLeftInRollup "dead_rows_left_in_rollup"
            "a grouping that a rollup answers counts rows that its reader does not see",
        BitmapNotRebuiltAfterMerge "bitmap_not_rebuilt_after_merge"
            "a merged segment has the bitmaps of an older one",
        BitmapForgetsNulls "bitmap_forgets_nulls" "a bitmap index leaves out the rows with NULL",
        UniqueNotCheckedInCommit "unique_not_checked_in_commit"
            "one commit may give a unique value to two rows",
        UniqueNotCheckedInLoads "unique_not_checked_in_loads"
            "a load may give a unique value that a row has",
        UniqueNotCheckedInSpill "unique_not_checked_in_spill"
            "a large commit may give a unique value that a row has",
        UniqueNotRepointed "unique_not_repointed"
            "a merge leaves the entries of unique values behind",
        MergeIgnoresKeyOrder "merge_ignores_key_order"
            "a merged segment is not in the order of the keys",
        LoadIgnoresKeyOrder "load_ignores_key_order"
            "a loaded segment is not in the order of the keys",
        OverlayOrderWrong "overlay_order_wrong"
            "a walk over several segments does not give the next key",
        RangeTrustsCutKeys "range_trusts_cut_keys"
            "a range takes the starts of long keys for the whole",
        LinesReadFromTheirFirstRow "lines_read_from_their_first_row"
            "key and value are those of an earlier row",
        TimeNotLogged "time_not_logged" "an expired entry is back when the clock has gone back",
        PurgeIgnoresSnapshots "purge_ignores_snapshots"
            "a merge drops what had not expired for a snapshot",
        PurgeCutsChains "purge_cuts_chains"
            "a merge drops what leads a snapshot to an older version",
        TtlByWall "ttl_by_wall" "times to live go by the wall clock",
        OffsetBackWithoutEnding "offset_back_without_ending"
            "a date that is taken back brings back what had expired",
        BootIdIgnored "boot_id_ignored" "boot time is compared with that of another boot",
        RetentionByUnconfirmedTime "retention_by_unconfirmed_time"
            "rows are destroyed by a date that is not confirmed",
        WalkSkipsDamage "walk_skips_damage" "a walk over a bucket leaves out what it cannot read",
        ExpiredKeyNotReplaced "expired_key_not_replaced"
            "a new entry leaves the expired one of its key where it is",
        ExpiredBackByAlteration "expired_back_by_alteration"
            "what has expired is back when rows expire by another field",
        CountTakesExpiredRows "count_takes_expired_rows" "a count takes rows that have expired",
        BatchFrameHasOneTable "batch_frame_has_one_table"
            "the log has the changes of one bucket of a batch",
        LargeCommitReplaysOneTable "large_commit_replays_one_table"
            "of a large commit of several tables one is replayed",
        LargeCommitReplaysNoRows "large_commit_replays_no_rows"
            "of a large commit only what became segments is replayed",
        FirstCommitterLoses "first_committer_loses"
            "a transaction overwrites what others have committed since",
        SerializableReadsNotChecked "serializable_reads_not_checked"
            "what a transaction has read may have changed",
        SavepointKeepsChanges "savepoint_keeps_changes" "what was changed since a savepoint stays",
        UndoneRowsStayInQueries "undone_rows_stay_in_queries"
            "a query shows what went with a savepoint",
        SpilledRowsNotValidated "spilled_rows_not_validated"
            "rows that a transaction wrote to files overwrite those of others",
        UndoneRowsStayInFiles "undone_rows_stay_in_files"
            "what went with a savepoint stays where it was written",
        TransactionSeesReplacedRows "transaction_sees_replaced_rows"
            "a query shows rows that the transaction has replaced",
        TransactionForgetsDeletes "transaction_forgets_deletes"
            "a commit leaves the rows that the transaction removed",
        DefinitionsOutliveConflict "definitions_outlive_conflict"
            "tables of a refused transaction stay in the catalogue",
        RowsLoggedByOldSchema "rows_logged_by_old_schema"
            "rows of a table that is altered with them are logged wrongly",
        DropWithinCommitNotReplayed "drop_within_commit_not_replayed"
            "replay ignores that a transaction dropped a table",
        RenameWithinCommitNotReplayed "rename_within_commit_not_replayed"
            "replay ignores that a transaction renamed a table",
        DefinitionsOutliveSavepoint "definitions_outlive_savepoint"
            "tables that a transaction goes back on stay",
        ReplayFindsRowsByRowOrder "replay_finds_rows_by_row_order"
            "replay searches rows by number where they lie by key",
        DurabilityOfAWriteIgnored "durability_of_a_write_ignored"
            "a write is not durable though it was asked to be",
        OperatorsStopEarly "operators_stop_early" "of several operators the last is left out",
        OperatorsWithoutChecks "operators_without_checks"
            "a row that operators make is not tested by the checks",
        ValueReferenceNotRepointed "value_reference_not_repointed"
            "a value is moved, and its row still names the old place",
        ImpliedFilterBelowOuterJoin "implied_filter_below_outer_join"
            "what an OR of WHERE implies of the right of a left join is tested below the join",
        ConditionBelowOuterJoin "condition_below_outer_join"
            "a query on the right of a left join tests conditions of WHERE itself",
        RuntimeFilterLosesLastKey "runtime_filter_loses_last_key"
            "the side of a join that is read last is not read for the greatest key of the other",
        JoinShareDropped "join_share_dropped"
            "of the rows that a join puts into shares for its threads the last share is left out",
        OneBranchTakenForAll "one_branch_taken_for_all"
            "what the first branch of an OR asks for is taken for what all of them ask for",
    }
    Invariants {
        FrameNumberSkipped "frame_number_skipped" "a frame has the number after its own",
        FrameClaimsItself "frame_claims_itself" "a frame claims that it is durable itself",
        SealAheadOfItsFrame "seal_ahead_of_its_frame"
            "a segment of a seal claims commits behind the frame that names it",
        CheckpointHasTableTwice "checkpoint_has_table_twice" "a checkpoint has a table twice",
        SketchLeftEmpty "sketch_left_empty" "a sketch of the values of a field has seen none",
        ZoneBoundsSwapped "zone_bounds_swapped" "a zone map has the greatest value as the least",
        SpilledRowsUnsorted "spilled_rows_unsorted"
            "rows that a transaction writes to files are not in the order of their row ids",
        RunOfAnotherTable "run_of_another_table" "a run of an index names another table",
        RunLastEntryOutOfOrder "run_last_entry_out_of_order"
            "the first entry of a sorted run is its last",
        GramsWithoutEnd "grams_without_end" "the list of a trigram index is cut off",
        RollupLacksLastRow "rollup_lacks_last_row"
            "what is kept of a rollup for a segment lacks its last row",
        BitmapLacksLastRow "bitmap_lacks_last_row" "a bitmap index has no value of the last row",
        IndexEntryOfNoSegment "index_entry_of_no_segment"
            "an index file has an entry of a segment that it does not list",
        ValueOffPlace "value_off_place" "a value lies across the bounds of its sectors",
        ClockRunsBack "clock_runs_back" "the elapsed time of the clock falls in the log",
        BackupLacksFile "backup_lacks_file" "a backup is done without one of its files",
        AppendVecLengthFalls "append_vec_length_falls"
            "an append-only vector publishes a shorter length",
        ByteHeapEndFalls "byte_heap_end_falls" "a byte heap publishes an earlier end",
        SparseChunkReplaced "sparse_chunk_replaced" "the words of some rows get another chunk",
        RebuildLosesEntry "rebuild_loses_entry"
            "a partition of an index is rebuilt without an entry",
        ReaderSlotReleasedTwice "reader_slot_released_twice"
            "a snapshot is taken out of the registry twice",
        GroupTakesOlderCommit "group_takes_older_commit"
            "a group gets rows of a commit before its last",
        GroupNotRegistered "group_not_registered" "a new group is not in the view of its table",
        UniqueEntryNotEntered "unique_entry_not_entered" "a row gets no entry in a unique index",
        ViewNamesRowGroupTwice "view_names_row_group_twice" "a row group is put into a view twice",
        DeleteBitNotSet "delete_bit_not_set" "a row of a segment dies without its bit",
        RewriteForgetsRow "rewrite_forgets_row" "a rewrite does not say where a row went",
        HorizonFalls "horizon_falls" "a merge lowers the horizon of a table",
        PinnedPlaceForgotten "pinned_place_forgotten"
            "a rewrite forgets where rows went that a transaction holds",
        LogDurableFalls "log_durable_falls" "the log makes an earlier commit the last durable one",
        NumberSkipped "number_skipped" "a commit does not get the number after the last",
        PublishedFalls "published_falls" "an older commit is published after a newer one",
        DurableFalls "durable_falls" "an older commit is made durable after a newer one",
        VisibleBeyondPublished "visible_beyond_published"
            "a commit is visible before it is published",
        AcknowledgedUnsynced "acknowledged_unsynced"
            "a commit is acknowledged without a wait for the disk",
        NamesOfOlderCommit "names_of_older_commit"
            "names of tables are published as of an older commit",
        SequenceFalls "sequence_falls" "a sequence gives values once more",
        CheckpointCommitFalls "checkpoint_commit_falls"
            "a checkpoint is named as of an older commit than the last",
        HeldSnapshotsPileUp "held_snapshots_pile_up" "no held snapshot goes for one that comes",
    }
    Model {
        ForwardingNotRegistered "forwarding_not_registered"
            "a merge does not register where its rows went",
        RepointBeforeSwap "repoint_before_swap"
            "index entries name the new segment before it is swapped in",
        PublishWithoutLock "publish_without_lock" "a merge is swapped in beside commits",
        DropHorizonNotRaised "drop_horizon_not_raised"
            "readers do not learn that a merge dropped versions",
        PublishedBeforeApplied "published_before_applied" "a commit is visible before its rows are",
        PartsPublishedBeforeApplied "parts_published_before_applied"
            "a commit of several tables is visible before its rows are",
        ValidatedBeforeTheLock "validated_before_the_lock"
            "a commit is validated before it has the commit lock",
        LeaderLeavesRequest "leader_leaves_request"
            "who commits the events that wait goes while one comes",
        TailLosesWake "tail_loses_wake"
            "a tail waits for what came after it looked, and before it began to wait",
    }
    Kill {
        AnswerBeforeSync "answer_before_sync" "a write is answered before it is in the log",
        IdempotencyKeptApart "idempotency_kept_apart"
            "a write and its idempotency key are two commits",
        WatchNotValidated "watch_not_validated" "EXEC does not look at the keys that are watched",
        ExecByTimeOfWatch "exec_by_time_of_watch"
            "EXEC runs in the transaction that began with WATCH",
        ExpiredKeyKeepsWatch "expired_key_keeps_watch"
            "a key that is watched and has ended counts as unchanged",
        EditForgetsEnd "edit_forgets_end" "a key that INCR changes has no end any more",
        TailTellsBeforeDurable "tail_tells_before_durable"
            "a tail tells events that the disk does not have yet",
    }
    Sql {
        OrderByPositionByText "order_by_position_by_text"
            "ORDER BY 2 is the text of the second column, which may be the name of another",
        EqualNamesRepeatTheFirst "equal_names_repeat_the_first"
            "* shows the first of two columns of one name twice",
        DigitsEndAtSeparator "digits_end_at_separator" "1_000 is 1 in a column that is called _000",
        HexIsBytes "hex_is_bytes" "0xFF is a byte",
        NotnullNamesAColumn "notnull_names_a_column" "x NOTNULL is x in a column of that name",
        EscapeNullIsNone "escape_null_is_none" "LIKE … ESCAPE NULL is LIKE without ESCAPE",
        RoundInFloats "round_in_floats" "rounding goes by a product that is rounded itself",
        JsonPathIsAName "json_path_is_a_name" "'$.a' is the name of a member",
        TotalLeavesJoinsOut "total_leaves_joins_out"
            "the total of EXPLAIN ANALYZE has the last steps only",
        NothingSelectsAll "nothing_selects_all" "SELECT FROM t is SELECT * FROM t",
        SharpBeginsAName "sharp_begins_a_name" "17#5 is 17 in a column #5",
        AddedFieldStaysNull "added_field_stays_null"
            "a new field with values of its own for each row is NULL in the rows there are",
    }
}
