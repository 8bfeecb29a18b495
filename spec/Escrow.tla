--------------------------------- MODULE Escrow --------------------------------
(* One budget for tenants that ask, pause, are removed, and come back.  Who has   *)
(* asked within Release ticks is present, and has a share: its guarantee, and     *)
(* then by weight up to its cap, as if water rose in vessels.  An ask beyond the  *)
(* share is for a part of a unit, and for what nobody's share or use needs.       *)
(*                                                                                *)
(* The level is not computed here as the engine does, but is the one at which all *)
(* stand where they say that they do.  What is owed to who asks for much at once  *)
(* (T4) is in the explorer's model alone.  A window lasts as long as it likes.    *)
EXTENDS Integers, FiniteSets
CONSTANTS N, Limit, Cost,
          Weight,     \* of tenant 0; the others have 1
          Guarantee,  \* of tenant 1
          Cap,        \* of tenant 2
          Release,    \* ticks until who has stopped is absent
          Evicts,     \* tenants are removed, and others take their places
          Others,     \* guard: shares of others are kept
          Own,        \* guard: a borrower's own share is not lent to it
          Kept,       \* guard: what the removed have used stays used
          Leave       \* guard: who has stopped becomes absent
VARIABLES adm,        \* in the window
          used, age, came, gone,
          robbed,     \* an ask took of what was left of another's share
          silent      \* all but tenant 0 are silent from now on
vars == <<adm, used, age, came, gone, robbed, silent>>

T == 0..(N - 1)
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Less(a, b) == Max(0, a - b)
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})

Promise(t) == IF t = 1 THEN Guarantee ELSE 0
Most(t) == IF t = 2 THEN Min(Cap, Limit) ELSE Limit
Slope(t) == IF t = 0 THEN Weight ELSE 1

Init == /\ adm = 0 /\ used = [t \in T |-> 0] /\ age = [t \in T |-> Release]
        /\ came = [t \in T |-> FALSE] /\ gone = 0 /\ robbed = FALSE
        /\ silent = FALSE

\* ---- The level, where these (S) are present, and each has used so much (u)
Rest(S, u) == Less(Limit, Sum(u, T \ S) + gone)
\* Guarantees that others have used up shrink alike.
Vessels(S, u) ==
    LET short == Sum([t \in T |-> Max(Promise(t), u[t])], S) > Rest(S, u) IN
    [base |-> [t \in T |-> IF short THEN 0 ELSE Promise(t)],
     width |-> [t \in T |-> IF short THEN Promise(t) ELSE Slope(t)]]
\* over: it has used more than its share; full: its share is its cap.
Stands == {"under", "over", "full"}
\* Heights are in units times the widths of those under the level.
Poured(S, u, v, at) ==
    LET under == {t \in S : at[t] = "under"}
        widths == Sum(v.width, under)
        taken == Sum([t \in S |-> IF at[t] = "under" THEN v.base[t]
                                  ELSE IF at[t] = "over" THEN u[t] ELSE Max(Most(t), u[t])], S)
        water == Less(Rest(S, u), taken)
    IN [at |-> at, widths |-> widths,
        height |-> [t \in S |-> v.base[t] * widths + v.width[t] * water]]
StandsThere(u, p, t) ==
    LET has == u[t] * p.widths
        most == Max(Most(t), u[t]) * p.widths IN
    CASE p.at[t] = "under" -> has <= p.height[t] /\ p.height[t] <= most
      [] p.at[t] = "over" -> p.height[t] < has
      [] p.at[t] = "full" -> most <= p.height[t]
IsLevel(S, u, p) == IF p.widths > 0 THEN \A t \in S : StandsThere(u, p, t)
                    ELSE \A t \in S : p.at[t] = "full"
\* <<the share of each, whether a part of a unit is beyond it>>
Shares(S, u) ==
    LET v == Vessels(S, u)
        p == CHOOSE x \in {Poured(S, u, v, at) : at \in [S -> Stands]} : IsLevel(S, u, x) IN
    [t \in T |-> IF t \notin S THEN <<0, FALSE>>
                 ELSE IF p.at[t] = "full" THEN <<Most(t), FALSE>>
                 ELSE LET whole == p.height[t] \div p.widths IN
                      <<Min(Most(t), whole), p.height[t] % p.widths > 0 /\ whole < Most(t)>>]
Present == {t \in T : age[t] < Release}
Left(S, u) == LET sh == Shares(S, u) IN [t \in T |-> Less(sh[t][1], u[t])]

\* ---- Asking
Admits(t, c) ==
    LET S == Present \cup {t}
        sh == Shares(S, used)
        mine == sh[t][1]
        all == Sum(used, T) + gone
        others == Sum([o \in T |-> Max(sh[o][1], used[o])], T \ {t}) + gone
        mayLend == used[t] < mine \/ (used[t] = mine /\ sh[t][2])
        lent == used[t] + c <= Min(Less(Limit, others), Most(t))
        left == Less(Limit, all)
        reserve == Sum([o \in T |-> Less(sh[o][1], used[o])], S \ {t})
    IN \/ c <= left /\ used[t] + c <= mine
       \/ c <= left /\ mayLend /\ lent
       \/ ~Others /\ c <= left
       \/ ~Own /\ c <= left /\ used[t] + c - mine <= Less(left, reserve)
Seen(t) == /\ age' = [age EXCEPT ![t] = 0]
           /\ came' = [came EXCEPT ![t] = @ \/ age[t] >= Release]
\* Who is present takes nothing of what is left of another's share.
Robs(t, u) == t \in Present /\ LET before == Left(Present, used)
                                   after == Left(Present, u) IN
                               \E o \in T \ {t} : after[o] < before[o]
Ask(t, c) == /\ ~silent /\ Seen(t) /\ UNCHANGED <<gone, silent>>
             /\ IF Admits(t, c) THEN adm' = adm + c /\ used' = [used EXCEPT ![t] = @ + c]
                ELSE UNCHANGED <<adm, used>>
             /\ robbed' = (robbed \/ Robs(t, used'))

\* ---- Time, and tenants that go
Older(S) == /\ age' = [t \in T |-> IF t \in S /\ (Leave \/ age[t] + 1 < Release)
                                   THEN Min(age[t] + 1, Release) ELSE age[t]]
            /\ came' = [t \in T |-> came[t] /\ age'[t] < Release]
Tick == ~silent /\ Older(T) /\ UNCHANGED <<adm, used, gone, robbed, silent>>
Turn == /\ ~silent /\ adm' = 0 /\ used' = [t \in T |-> 0] /\ gone' = 0
        /\ came' = [t \in T |-> FALSE] /\ UNCHANGED <<age, robbed, silent>>
Evict(t) == /\ Evicts /\ ~silent /\ UNCHANGED <<adm, robbed, silent>>
            /\ gone' = gone + IF Kept THEN used[t] ELSE 0
            /\ used' = [used EXCEPT ![t] = 0] /\ age' = [age EXCEPT ![t] = Release]
            /\ came' = [came EXCEPT ![t] = FALSE]

\* From now on tenant 0 takes what it can, and time passes when it can take nothing.
Silence == ~silent /\ silent' = TRUE /\ UNCHANGED <<adm, used, age, came, gone, robbed>>
Alone == /\ silent /\ adm < Limit /\ UNCHANGED <<gone, robbed, silent>>
         /\ IF Admits(0, 1)
            THEN Seen(0) /\ adm' = adm + 1 /\ used' = [used EXCEPT ![0] = @ + 1]
            ELSE Older(T \ {0}) /\ UNCHANGED <<adm, used>>

Next == \/ Tick \/ Turn \/ \E t \in T \ {0} : Evict(t)
        \/ \E t \in T, c \in 1..Cost : Ask(t, c)
Spec == Init /\ [][Next]_vars

Within == adm <= Limit
\* What is reserved is there.
Reserved == adm + Sum(Left(Present, used), Present) <= Max(Limit, adm)
\* Who was there from the beginning of the window has its guarantee.
Guaranteed == N > 1 /\ 1 \in Present /\ ~came[1] /\ used[1] < Guarantee
                  => adm + Guarantee - used[1] <= Limit
NotRobbed == ~robbed
Reached == adm < Limit                 \* must be violated

\* All of it can be used by one tenant, though others were there.
FairSpec == Init /\ [][Next \/ Silence \/ Alone]_vars /\ WF_vars(Alone)
UsedUp == silent ~> adm = Limit
================================================================================
