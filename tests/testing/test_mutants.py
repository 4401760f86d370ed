"""The suite bites: every backend that is broken on purpose is found out, by the clauses that are about its fault.

``python -m tests.testing.matrix`` prints every clause that each one breaks; here are those that must find it. What these
tests cannot show are faults between processes (kill, fork): those are the SQLite backend's tests of the same clauses.
"""

import pytest

from convostore.backends.memory import MemoryBackend
from convostore.testing.backend_suite import BackendSuite
from convostore.testing.suite import clauses_of
from tests.testing import mutants
from tests.testing.disk import DiskBackend
from tests.testing.matrix import failures, killers

FOUND_BY: dict[type[MemoryBackend], str] = {
    mutants.AppliesHalf: "B1",
    mutants.BoundToItsFirstLoop: "B15",
    mutants.ChecksNoIdsInReads: "B8 B17 E2",
    mutants.CountsRevisions: "B6",
    mutants.CreatedOrderByClock: "B10",
    mutants.CursorSkipsTies: "B10",
    mutants.DeclaresWhatItLacks: "E1",
    mutants.DedupesByContent: "B7",
    mutants.DeletesByPrefix: "B8 B9",
    mutants.DoublesOnRetry: "B7",
    mutants.DropsEmptyDocuments: "B11",
    mutants.DropsTheLastOfABatch: "B1 B5",
    mutants.ErrorsThatDoNotTravel: "E1",
    mutants.FiltersAfterPaging: "B10",
    mutants.FindsNothingWrong: "B12",
    mutants.FindsTheDeleted: "B9",
    mutants.FirstForLast: "B3",
    mutants.FoldsCase: "B8",
    mutants.ForgetsDocumentsOnDelete: "B9",
    mutants.GivesAnotherOwner: "B6",
    mutants.HidesTheCause: "E3",
    mutants.IgnoresExpectedRevision: "B6",
    mutants.IgnoresExpectedStamp: "B6",
    mutants.IgnoresOnlySubject: "B6 B8",
    mutants.KeepsTheStampOnReplace: "B3",
    mutants.KeepsWhatItWasGiven: "B16",
    mutants.LeaksAThreadPerCall: "B15",
    mutants.LetsDriverErrorsThrough: "E3",
    mutants.ListsInUtf16Order: "B10",
    mutants.LooksAtTheVersionOnce: "B14",
    mutants.LosesAllForOne: "B12",
    mutants.LosesOnRestart: "B2 B13",
    mutants.ManglesBodies: "B11",
    mutants.NamesTheFirstDamageOnly: "B12",
    mutants.NeverNone: "E2",
    mutants.NormalisesIds: "B8",
    mutants.OpensWhatIsNewer: "B14",
    mutants.OrdersByClock: "B3",
    mutants.OverwritesDamage: "B12 E2",
    mutants.PagesByOffset: "B10",
    mutants.RacesWhenOpened: "B13",
    mutants.ReadsInTwoSteps: "B4",
    mutants.ReadsThenWrites: "B5",
    mutants.RefusesOnOneVerbOnly: "B8",
    mutants.RepairsWhenRead: "B12 E2",
    mutants.ReplacesAtTheEnd: "B3",
    mutants.ResurrectsOnLateCommit: "B9",
    mutants.ReturnsSharedFields: "B16",
    mutants.ReusesPositions: "B3",
    mutants.SkipsWhatIsDamaged: "B12 E2",
    mutants.StripsIds: "B8",
    mutants.TakesAPrefixForAPattern: "B8 B10",
    mutants.TakesAnOutageForAbsence: "E2 E3",
    mutants.TakesAnyCursor: "B10",
    mutants.TakesDamageForAbsence: "B12 E2",
    mutants.TakesNoneForAny: "B10",
    mutants.TrimsOnOneVerbOnly: "B8",
    mutants.TruncatesWhatIsTooLong: "B17",
    mutants.UpdatedAtIsTheClock: "B3",
    mutants.UpgradesToAnEmptyStore: "B14",
    mutants.VagueErrors: "E1",
    mutants.WorksWhenClosed: "B15",
    mutants.WritesRowByRow: "B1 B5",
    mutants.WritesWhenClosed: "B2",
}


@pytest.mark.parametrize("mutant", FOUND_BY, ids=lambda mutant: mutant.__name__)
def test_a_broken_backend_is_found_out_by_the_clauses_about_its_fault(mutant: type[MemoryBackend]) -> None:
    """Each clause that is about the fault has a test that fails."""
    found = killers(mutant)
    print(mutant.__name__, *sorted(found))
    assert set(FOUND_BY[mutant].split()) <= found


@pytest.mark.parametrize("sound", [MemoryBackend, DiskBackend], ids=lambda sound: sound.__name__)
def test_what_the_mutants_are_made_of_is_sound(sound: type[MemoryBackend]) -> None:
    """Without its fault, a mutant passes every test: it is the fault that is found."""
    assert [] == [each.message for each in failures(sound)]


def test_every_mutant_is_tried() -> None:
    """The table above names every mutant there is."""
    assert set(mutants.MUTANTS) == set(FOUND_BY)


def test_every_clause_finds_a_fault() -> None:
    """There is no clause of the backend contract, without exception, that finds nothing."""
    assert set(clauses_of(BackendSuite)) == {clause for found_by in FOUND_BY.values() for clause in found_by.split()}
